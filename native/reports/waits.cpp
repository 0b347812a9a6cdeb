#include "reports/waits.hpp"

#include <algorithm>
#include <map>

#include "group/descriptions.hpp"

namespace shim {
namespace {

// The shortest way along `awaited` from `start` back to it, without its end; empty where there is none.
std::vector<int> circle_through(int start, const std::map<int, std::vector<int>>& awaited) {
  std::map<int, int> came_from;
  std::vector<int> found = {start};
  for (std::size_t i = 0; i < found.size(); ++i) {  // grows meanwhile
    for (const int next : awaited.at(found[i])) {
      if (next == start) {
        std::vector<int> circle = {found[i]};
        while (circle.back() != start) circle.push_back(came_from.at(circle.back()));
        std::reverse(circle.begin(), circle.end());
        return circle;
      }
      if (came_from.emplace(next, found[i]).second) found.push_back(next);
    }
  }
  return {};
}

}  // namespace

std::vector<int> awaited_by(const Group& group, int rank) {
  const RankNote& note = group.note(rank);
  if (note.waits_since.load() == 0) return {};
  const std::uint64_t meeting = note.meeting.load();
  const std::uint64_t operation = note.operation.load();
  const auto is_awaited = [&](int other) {
    if (operation != 0) return newest_call(group, other) < operation;
    const RankNote& theirs = group.note(other);
    const bool has_come = meeting != 0 && theirs.waits_since.load() != 0 && theirs.meeting.load() == meeting;
    const auto place = static_cast<std::size_t>(other);
    return !has_come && (note.awaits[place / 64].load() >> place % 64 & 1U) != 0;
  };
  std::vector<int> ranks;
  for (int other = 0; other < group.size(); ++other)
    if (other != rank && is_awaited(other)) ranks.push_back(other);
  return ranks;
}

std::string noted_where(const Group& group, int rank) {
  const RankNote& note = group.note(rank);
  return note.meeting.load() != 0 ? note.waits_for.read() : "in group '" + group.name() + "'";
}

std::vector<int> circle_from(int start, const std::function<std::vector<int>(int)>& awaited_by) {
  std::map<int, std::vector<int>> awaited;
  std::vector<int> found = {start};
  for (std::size_t i = 0; i < found.size(); ++i) {  // grows meanwhile
    const std::vector<int>& next = awaited[found[i]] = awaited_by(found[i]);
    for (const int one : next)
      if (std::find(found.begin(), found.end(), one) == found.end()) found.push_back(one);
  }
  for (const int one : found)
    if (std::vector<int> circle = circle_through(one, awaited); !circle.empty()) return circle;
  return {};
}

std::string told_circle(std::vector<WaitInCircle> circle) {
  const auto is_lower = [](const WaitInCircle& a, const WaitInCircle& b) { return a.rank < b.rank; };
  std::rotate(circle.begin(), std::min_element(circle.begin(), circle.end(), is_lower), circle.end());
  std::string text = "rank " + std::to_string(circle[0].rank);
  bool is_proved = true;
  for (std::size_t i = 0; i < circle.size(); ++i) {
    is_proved = is_proved && circle[i].held == Held::program;
    text += std::string(i > 0 ? ", which" : "") + " waits " + circle[i].where + " for rank " +
            std::to_string(circle[(i + 1) % circle.size()].rank);
  }
  return text + ": they wait for each other" +
         (is_proved ? "" : ", unless another thread or a signal handler of theirs makes the missing call");
}

}  // namespace shim
