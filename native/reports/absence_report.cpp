#include "group/long_wait.hpp"

#include <algorithm>
#include <chrono>

#include "group/descriptions.hpp"
#include "group/group.hpp"
#include "platform/process.hpp"
#include "reports/circle_report.hpp"
#include "reports/inquiries.hpp"

namespace shim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int most_ranks = 32;  // in one report
constexpr auto patience = std::chrono::milliseconds(1000);
constexpr auto patience_with_one = std::chrono::milliseconds(400);

// Where a rank is that has left no note, as its process or the kernel tells.
std::string asked_of(const Group& group, int rank, Clock::time_point deadline) {
  if (group.carrier != nullptr) return group.carrier->whereabouts(rank);
  const auto limit = std::min(deadline, Clock::now() + patience_with_one);
  const Answer answer = ask_process(group.note(rank).address.read(), limit);
  if (!answer.waits.empty()) return answer.waits;
  if (!answer.place.empty()) return "is at " + answer.place;
  if (answer.told_place) return "is in no line of its program";
  return answer.came ? "is in code that keeps the interpreter to itself" : "does not answer";
}

class Report {
 public:
  Report(const Group& group, const std::vector<int>& asked, Clock::time_point deadline)
      : group_(group), asked_(asked), deadline_(deadline) {}

  std::string line_of(int rank) const {
    const RankNote& note = group_.note(rank);
    const int process = note.process.load();
    const bool is_known = process > 0 && note.processes.load() == pid_namespace();
    const std::string state = is_known && !is_gone(rank) ? state_of(process) : "";
    std::string text = "\n  " + rank_label(group_, rank) + " (pid " + std::to_string(process) +
                       (state.empty() ? "" : ", " + state) + ")" + (rank == group_.rank() ? ", this rank," : "") + " " +
                       whereabouts(rank, state == "stopped");
    if (const std::string calls = last_calls(group_, rank); !calls.empty()) text += "\n    last calls: " + calls;
    return text;
  }

 private:
  bool is_gone(int rank) const { return rank != group_.rank() && group_.is_gone(rank); }

  std::string whereabouts(int rank, bool is_stopped) const {
    if (is_gone(rank)) return "is gone: rank " + std::to_string(rank) + group_.peers().ending_of(rank);
    if (const std::string waits = noted_wait(group_, rank); !waits.empty()) return waits;
    const bool is_asked = std::find(asked_.begin(), asked_.end(), rank) != asked_.end();
    if (is_stopped) return "is stopped, as by SIGSTOP or a debugger";
    return is_asked ? asked_of(group_, rank, deadline_) : "has arrived";
  }

  const Group& group_;
  const std::vector<int>& asked_;
  Clock::time_point deadline_;
};

}  // namespace

std::string report_of(const Group& group, const std::vector<int>& asked) {
  const auto deadline = Clock::now() + patience;
  // First of all: those that wait may all give up at this moment.
  const std::string circle = group.carrier != nullptr
                                 ? group.carrier->circle()
                                 : circle_report(group.note(group.rank()).address.read(), deadline);
  std::vector<int> order = asked;  // those that matter first, where not all can be told of
  for (int rank = 0; rank < group.size(); ++rank)
    if (std::find(asked.begin(), asked.end(), rank) == asked.end()) order.push_back(rank);
  const std::size_t told = std::min<std::size_t>(order.size(), most_ranks);
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(told));
  const Report report(group, asked, deadline);
  std::string text;
  for (std::size_t i = 0; i < told; ++i) text += report.line_of(order[i]);
  if (order.size() > told) text += "\n  and " + std::to_string(order.size() - told) + " more ranks";
  if (!circle.empty()) text += "\n  " + circle;
  return text;
}

}  // namespace shim
