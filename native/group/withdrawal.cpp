// Of one operation every rank that lives gets the result, or none does because a rank gave it up.
//
// A rank that has all it needs takes the result, and the others need not hear of it. So a rank that gives up says first
// that it is about to, in its arrival line, and then looks whether every rank has given all that the others need of it.
// Where one has not, nobody has the result, and nobody will: a rank looks at all lines after it has seen that all ranks
// have given all, and waits for what becomes of those that are about to give up. Where every rank has given all, a rank
// that looked earlier may have the result: the rank that wanted to give up stays, and has all it needs for the result.
//
// Where the ranks agree within an operation which way the data goes, such as on memory, a rank knows what the others
// need of it when it has come through that, and has not given all before it has said so.
//
// One of the two sees the other, as each first says its part and then looks, in the one order of all such stores and
// loads. The usual case costs nothing but the look, at lines that were read just before.
#include "group/group.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "group/descriptions.hpp"
#include "platform/stall_warning.hpp"

namespace shim {
namespace {

// It takes a rank no time to decide, but its process may have ended, be stopped, or get no processor.
constexpr double decision_seconds = 10;

}  // namespace

bool Group::has_given(int rank) const {
  const ArrivalLine& line = arrival(rank, sequence);
  if ((line.sequence.load() & ~withdrawing) != sequence) return false;
  if (direct(rank).agreed.load() < given.agreed || direct(rank).finished.load() < given.finished) return false;
  if (!given.fills(rank)) return true;
  const bool has_filled =
      progress(rank).ready.load() >= given.filled || (given.may_be_first && line.filled != SlotSize::none);
  return has_filled && progress(rank).made.load() >= given.made;
}

void Group::tell_agreed() {
  if (given.agreed == 0) return;
  direct(rank_).agreed.exchange(given.agreed);
  ring_bells();
}

bool Group::withdraw() {
  ArrivalLine& mine = arrival(rank_, sequence);
  if (mine.sequence.load() != sequence) return true;  // it has not arrived there, so that nobody has the result
  mine.sequence.exchange(sequence | withdrawing);
  bool have_all_given = true;
  for (int rank = 0; rank < size(); ++rank) have_all_given = have_all_given && has_given(rank);
  mine.sequence.exchange(have_all_given ? sequence : sequence | withdrawn);
  ring_bells();
  return !have_all_given;
}

void Group::settle() {
  if (given.filled == Given::never) return;  // the data has gone another way than through shared memory
  for (int rank = 0; rank < size(); ++rank) wait_for(rank, [this](int peer) { return has_given(peer); });
  for (int rank = 0; rank < size(); ++rank)
    if (arrival(rank, sequence).sequence.load() != sequence) return check_nobody_withdrew();
}

// This rank must not give up meanwhile, as that one
// may find that it has given all, and take the result.
void Group::wait_for_decision(int rank) {
  using Clock = std::chrono::steady_clock;
  if (WaitHooks* hooks = WaitHooksScope::current()) hooks->about_to_block();
  const double limit = std::max(timeout_.load(), decision_seconds);
  const auto until = Clock::now() + std::chrono::duration<double>(limit);
  while ((arrival(rank, sequence).sequence.load() & withdrawing) != 0) {
    if (peers_.presence(rank) == Presence::died) check_present(rank);
    if (Clock::now() > until)
      fail(Failure(FailureKind::timeout,
                   rank_label(*this, rank) + " has not said for " + shown_seconds(limit) +
                       " whether it gives up operation " + std::to_string(sequence) +
                       " of the group\nThe group can no longer be used.",
                   {rank}));
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Group::check_nobody_withdrew() {
  const auto what = [this] { return "operation " + std::to_string(sequence) + " of the group"; };
  for (int rank = 0; rank < size(); ++rank) {
    const auto& theirs = arrival(rank, sequence).sequence;
    for (std::uint64_t said; (said = theirs.load()) != sequence;) {
      if ((said & withdrawing) != 0)
        wait_for_decision(rank);
      else
        wait_for(rank, [rank](int peer) { return peer != rank; }, what);  // until it is gone, which it says next
    }
  }
}

}  // namespace shim
