// Rings that are reserved in the first operation that needs them: each rank reserves its own, which may fail, and all
// learn whether all have theirs. Mirrors native/collectives/ring_memory.cpp, and the arrivals before it, which keep the
// tries of different operations apart.
#include <algorithm>
#include <array>

#include "model/cases.hpp"

namespace shim::model {
namespace {

enum Broken {
  nothing,
  tried_before_stored,  // told
  arrivals_not_waited_for,
  own_ring_decides,
  own_ring_not_asked,
  earlier_try_counts,
  failure_not_told,
  filled_before_reserved,  // before an arrival
};

constexpr int most_ranks = 3;
constexpr int operations = 3;
enum At : std::uint8_t { arrive, waits, reserve, store, tell, hear, look, fill, read, over };
enum Decision : std::uint8_t { undecided, enough, too_little };
enum Error : std::uint8_t { none, different_decisions, not_reserved };

struct Rank {
  std::uint8_t at, operation, peer;
  std::uint8_t is_reserved;                       // its ring
  std::uint8_t arrived, tried, has_ring, filled;  // as the others see them; the last operation, but for has_ring
  std::uint8_t one_lacks, has_rings;              // what it knows of all
};

class Reserving {
 public:
  struct State {
    std::array<Rank, most_ranks> ranks;
    std::array<std::uint8_t, operations> decisions;  // of the first rank to decide
    std::uint8_t error;
  };

  Reserving(int size, int broken) : size_(size), broken_(static_cast<Broken>(broken)) {}

  State first() const { return State{}; }
  bool is_over(const State& state) const {
    return std::all_of(state.ranks.begin(), state.ranks.begin() + size_,
                       [](const Rank& rank) { return rank.at == over; });
  }
  const char* violation(const State& state) const {
    if (state.error == different_decisions) return "the ranks decide differently";
    return state.error == not_reserved ? "a rank touches a ring that is not reserved" : nullptr;
  }

  template <class Emit>
  void steps(const State& state, const Emit& emit) const {
    for (int rank = 0; rank < size_; ++rank) step(state, rank, emit);
  }

 private:
  template <class Emit>
  void step(const State& before, int rank, const Emit& emit) const {
    State state = before;
    Rank& me = state.ranks[rank];
    const Rank& theirs = before.ranks[me.peer];
    switch (me.at) {
      case arrive:
        ++me.operation;
        if (me.has_rings != 0 || broken_ == filled_before_reserved) fill_own(state, rank);
        me.arrived = me.operation;
        me.at = broken_ == arrivals_not_waited_for && me.has_rings == 0 ? reserve : waits;
        return emit(rank, "arrives", state);
      case waits:
        if (theirs.arrived < me.operation) return;
        if (!go_to_next_peer(me)) me.at = me.has_rings != 0 ? read : reserve;
        return emit(rank, "sees that a rank has arrived", state);
      case reserve:
        me.is_reserved = 1;
        me.at = broken_ == tried_before_stored ? tell : store;
        emit(rank, "reserves its ring, or has it", state);
        if (before.ranks[rank].is_reserved != 0) return;
        me.is_reserved = 0;
        if (broken_ == failure_not_told) end_operation(me);
        return emit(rank, "cannot reserve its ring", state);
      case store:
        me.has_ring = me.is_reserved;
        me.at = broken_ == tried_before_stored ? hear : tell;
        return emit(rank, "says whether it has its ring", state);
      case tell:
        me.tried = me.operation;
        me.at = broken_ == tried_before_stored ? store : hear;
        return emit(rank, "says that it has tried", state);
      case hear:
        if (theirs.tried < (broken_ == earlier_try_counts ? 1 : me.operation)) return;
        me.at = look;
        return emit(rank, "sees that a rank has tried", state);
      case look:
        if (theirs.has_ring == 0 && is_asked(rank, me.peer)) me.one_lacks = 1;
        me.at = hear;
        if (!go_to_next_peer(me)) decide(state, rank);
        return emit(rank, "sees whether a rank has its ring", state);
      case fill:
        fill_own(state, rank);
        me.at = read;
        return emit(rank, "fills its ring", state);
      case read:
        if (theirs.filled < me.operation) return;
        if (theirs.is_reserved == 0) state.error = not_reserved;
        if (!go_to_next_peer(me)) end_operation(me);
        return emit(rank, "reads a ring", state);
      default:
        return;
    }
  }

  bool is_asked(int rank, int peer) const {
    if (broken_ == own_ring_decides) return peer == rank;
    return broken_ != own_ring_not_asked || peer != rank;
  }

  void decide(State& state, int rank) const {
    Rank& me = state.ranks[rank];
    const std::uint8_t decision = me.one_lacks != 0 ? too_little : enough;
    std::uint8_t& first = state.decisions[me.operation - 1];
    if (first != undecided && first != decision) state.error = different_decisions;
    first = decision;
    me.one_lacks = 0;
    me.has_rings = decision == enough ? 1 : 0;
    if (decision == enough)
      me.at = fill;
    else
      end_operation(me);
  }

  static void fill_own(State& state, int rank) {
    Rank& me = state.ranks[rank];
    if (me.is_reserved == 0) state.error = not_reserved;
    me.filled = me.operation;
  }

  // Of a rank that returns, or raises, after which it may try again.
  static void end_operation(Rank& me) { me.at = me.operation == operations ? over : arrive; }

  // Of all ranks, itself among them.
  bool go_to_next_peer(Rank& me) const {
    me.peer = static_cast<std::uint8_t>((me.peer + 1) % size_);
    return me.peer != 0;
  }

  int size_;
  Broken broken_;
};

Outcome run(int ranks, int broken) { return explore(Reserving(ranks, broken)); }

}  // namespace

std::vector<Case> reserve_cases() {
  return cases_of("reserve", {2, 3},
                  {{"a rank says that it has tried before it says how it went", 2},
                   {"a later operation's try is not kept apart from this one's", 2},
                   {"a rank that has its ring takes it that all have theirs", 2},
                   {"a rank does not ask whether it has its own ring", 2},
                   {"a try for an earlier operation counts", 2},
                   {"a rank that cannot reserve its ring does not say so", 2},
                   {"a rank fills a slot before it arrives where there are no rings", 2}},
                  &run);
}

}  // namespace shim::model
