#include "reports/circle_report.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "reports/inquiries.hpp"
#include "reports/waits.hpp"

namespace shim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto patience_with_one = std::chrono::milliseconds(100);

std::optional<ProcessWait> wait_at(const std::string& address, Clock::time_point until) {
  return ask_wait(address, std::min(until, Clock::now() + patience_with_one));
}

// Who awaits whom, as the processes say when they are asked. They are numbered as they are heard of.
class Inquiry {
 public:
  Inquiry(const std::string& address, Clock::time_point until) : until_(until) { place_of(address); }

  std::vector<int> awaited_by(int process) {
    std::vector<int> awaited;
    const auto one = static_cast<std::size_t>(process);
    std::optional<ProcessWait> wait = wait_at(addresses_[one], until_);
    if (wait)
      for (const std::string& address : wait->awaited) awaited.push_back(place_of(address));
    waits_[one] = std::move(wait);
    return awaited;
  }

  // Asked again, whether all of them wait as before. What was the same both times was there in between, too.
  bool still_is(const std::vector<int>& circle) const {
    for (std::size_t i = 0; i < circle.size(); ++i) {
      const std::string& next = addresses_[static_cast<std::size_t>(circle[(i + 1) % circle.size()])];
      const auto again = wait_at(addresses_[static_cast<std::size_t>(circle[i])], until_);
      if (!again || again->since != wait_of(circle[i]).since || again->held == Held::nothing ||
          std::find(again->awaited.begin(), again->awaited.end(), next) == again->awaited.end())
        return false;
    }
    return true;
  }

  const ProcessWait& wait_of(int process) const { return *waits_[static_cast<std::size_t>(process)]; }

 private:
  int place_of(const std::string& address) {
    const auto found = std::find(addresses_.begin(), addresses_.end(), address);
    const auto place = found - addresses_.begin();
    if (found == addresses_.end()) {
      addresses_.push_back(address);
      waits_.emplace_back();
    }
    return static_cast<int>(place);
  }

  Clock::time_point until_;
  std::vector<std::string> addresses_;
  std::vector<std::optional<ProcessWait>> waits_;
};

}  // namespace

std::string circle_report(const std::string& address, Clock::time_point until) {
  if (address.empty()) return {};
  Inquiry inquiry(address, until);
  const std::vector<int> circle = circle_from(0, [&](int process) { return inquiry.awaited_by(process); });
  if (circle.empty() || !inquiry.still_is(circle)) return {};
  std::vector<WaitInCircle> waits;
  for (const int process : circle) {
    const ProcessWait& wait = inquiry.wait_of(process);
    waits.push_back({wait.rank, wait.where, wait.held});
  }
  return told_circle(std::move(waits));
}

}  // namespace shim
