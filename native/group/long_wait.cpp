#include "group/long_wait.hpp"

#include "group/descriptions.hpp"
#include "group/group.hpp"
#include "platform/steady_time.hpp"

namespace shim {
namespace {

constexpr auto before_note = std::chrono::milliseconds(100);

}  // namespace

LongWait::~LongWait() {
  if (!has_note_) return;
  group_.note(group_.rank()).waits_since.store(0);
  group_.has_note.store(false);
}

void LongWait::go_on(Clock::time_point now) {
  if (now - began_ < before_note || group_.is_part_of_another) return;
  if (!tried_note_) leave_note();
  if (const WaitHooks* hooks = WaitHooksScope::current(); has_note_ && hooks != nullptr)
    group_.note(group_.rank()).held.store(held_by(*hooks));
  if (warning_.is_due(now) && WaitHooksScope::current() != nullptr) warn();
}

// One thread's wait is noted at a time: the one that began first, as a rule.
void LongWait::leave_note() {
  tried_note_ = true;
  WaitHooks* hooks = WaitHooksScope::current();
  if (hooks == nullptr || group_.has_note.exchange(true)) return;
  has_note_ = true;
  RankNote& note = group_.note(group_.rank());
  note.waits_for.write(subject());
  note.waits_at.write(hooks->place());
  note.operation.store(what_ ? 0 : group_.sequence);
  note_awaited(group_, missing());
  note.held.store(held_by(*hooks));
  note.waits_since.store(steady_ns(began_));
}

std::string LongWait::subject() const {
  if (what_) return what_();
  return "operation " + std::to_string(group_.sequence) + ", " + describe_call(group_, group_.rank(), group_.sequence);
}

std::vector<int> LongWait::missing() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < group_.size(); ++rank)
    if (rank != group_.rank() && !ready_for_(rank) && (what_ || !has_come(rank))) ranks.push_back(rank);
  return ranks;
}

// Across hosts a rank may have arrived, as it says, and not have been heard of by way of its leader.
bool LongWait::has_come(int rank) const {
  if (group_.carrier == nullptr) return false;
  return newest_call(group_, rank) >= group_.sequence ||
         (!group_.is_here(rank) && group_.elsewhere(rank).arrived.load() >= group_.sequence);
}

// Of a collective, those that have not arrived; of a message, everybody, since any may have to do with it.
std::vector<int> LongWait::to_be_asked() const {
  if (!what_) return missing();
  std::vector<int> others;
  for (int rank = 0; rank < group_.size(); ++rank)
    if (rank != group_.rank()) others.push_back(rank);
  return others;
}

// "; not arrived: rank 1, rank 2", of a collective.
std::string LongWait::names_of(const std::vector<int>& ranks) const {
  if (what_) return {};
  if (ranks.empty()) return "; all ranks have arrived, but not what they give";
  std::string names;
  for (const int rank : ranks) names += (names.empty() ? "; not arrived: " : ", ") + rank_label(group_, rank);
  return names;
}

void LongWait::warn() const {
  if (group_.carrier != nullptr) group_.carrier->ask_all();
  if (ready_for_(group_.rank()) && missing().empty()) return;  // meanwhile they have come
  const int in_world = group_.world_rank(group_.rank());
  const std::string world = in_world == group_.rank() ? "" : " (rank " + std::to_string(in_world) + " of the world)";
  StallWarning::write(
      "rank " + std::to_string(group_.rank()) + " of " + std::to_string(group_.size()) + world,
      "in group '" + group_.name() + "': " + subject() + names_of(missing()) + report_of(group_, to_be_asked()),
      group_.timeout());
}

Failure LongWait::timeout() {
  if (group_.carrier != nullptr) group_.carrier->ask_all();
  const std::vector<int> absent = missing();
  const std::string subject = what_ ? what_() : "operation " + std::to_string(group_.sequence) + " of the group";
  return Failure(FailureKind::timeout,
                 subject + " made no progress for " + shown_seconds(group_.timeout()) + names_of(absent) +
                     report_of(group_, to_be_asked()) + "\nThe group can no longer be used.",
                 absent);
}

}  // namespace shim
