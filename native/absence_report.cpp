#include "absence_report.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "call_description.hpp"
#include "inquiries.hpp"
#include "process.hpp"

namespace shim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int most_ranks = 32;  // in one report
constexpr auto patience = std::chrono::milliseconds(1000);
constexpr auto patience_with_one = std::chrono::milliseconds(400);

std::string seconds_since(std::int64_t steady_ns) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", static_cast<double>(now - steady_ns) * 1e-9);
  return text;
}

// Where a rank is that has left no note, as its process or the kernel tells.
std::string asked_of(const Group& group, int rank, Clock::time_point deadline) {
  const auto limit = std::min(deadline, Clock::now() + patience_with_one);
  const Answer answer = ask_process(group.note(rank).address.read(), limit);
  if (!answer.waits.empty()) return answer.waits;
  if (!answer.place.empty()) return "is at " + answer.place;
  if (answer.told_place) return "is in no line of its program";
  return answer.came ? "is in code that keeps the interpreter to itself" : "does not answer";
}

class Report {
 public:
  Report(const Group& group, const std::vector<int>& asked)
      : group_(group), asked_(asked), deadline_(Clock::now() + patience) {}

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
    if (is_gone(rank)) return "is gone: rank " + std::to_string(rank) + group_.ending_of(rank);
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

std::uint64_t newest_call(const Group& group, int rank) {
  return std::max(group.arrival(rank, 0).sequence.load(), group.arrival(rank, 1).sequence.load());
}

std::string noted_call(const Group& group, int rank) {
  const RankNote& note = group.note(rank);
  if (note.waits_since.load() == 0) return {};
  const std::string place = note.waits_at.read();
  return note.waits_for.read() + (place.empty() ? "" : ", at " + place);
}

std::string noted_wait(const Group& group, int rank) {
  const std::int64_t since = group.note(rank).waits_since.load();
  return since == 0 ? "" : "has waited " + seconds_since(since) + ": " + noted_call(group, rank);
}

std::string report_of(const Group& group, const std::vector<int>& asked) {
  std::vector<int> order = asked;  // those that matter first, where not all can be told of
  for (int rank = 0; rank < group.size(); ++rank)
    if (std::find(asked.begin(), asked.end(), rank) == asked.end()) order.push_back(rank);
  const std::size_t told = std::min<std::size_t>(order.size(), most_ranks);
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(told));
  const Report report(group, asked);
  std::string text;
  for (std::size_t i = 0; i < told; ++i) text += report.line_of(order[i]);
  if (order.size() > told) text += "\n  and " + std::to_string(order.size() - told) + " more ranks";
  return text;
}

std::string last_calls(const Group& group, int rank) {
  const std::uint64_t newest = newest_call(group, rank);
  std::string text;
  // The slot of the one before these may be written over already.
  for (std::uint64_t sequence = newest; sequence > 0 && newest - sequence < call_slots - 1; --sequence) {
    const std::string call = describe_call(group, rank, sequence);
    if (newest_call(group, rank) != newest) break;  // it goes on meanwhile
    text += (text.empty() ? "" : ", ") + std::to_string(sequence) + " " + call;
  }
  return text;
}

}  // namespace shim
