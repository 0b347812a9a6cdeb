// Ranks that die or are interrupted while the others wait: everybody's wait ends, with the rank named that it was.
// Mirrors native/group/group_failures.cpp.
#include <algorithm>
#include <array>

#include "model/cases.hpp"

namespace shim::model {
namespace {

enum Broken {
  nothing,
  readiness_seen_first,  // and then whether a rank is gone
  cause_after_state,
  cause_not_followed,
  failure_not_told,
  death_not_noticed,
  arrived_are_missed,  // a rank that is gone is missed whether it had arrived or not
};

constexpr int most_ranks = 3;
constexpr int operations = 2;
enum At : std::uint8_t { arrive, waits, look, judge, say, fail, ended };
enum Ending : std::uint8_t { none, completed, raised, died, interrupted };
enum Error : std::uint8_t { right, survivor_named, arrived_missed };

struct Rank {
  std::uint8_t at, ending, operation, peer, seen;  // seen: a set of ranks
  std::uint8_t arrived, passed;                    // as the others see them: the last operation, and the last passed on
  std::uint8_t has_failed, cause;                  // likewise; cause is a rank and 1
  std::uint8_t is_in_chain;                        // all have arrived, and it waits for the rank before
  std::uint8_t deaths_noticed;                     // a set of ranks
  std::uint8_t named;                              // a rank and 1
};

class Failing {
 public:
  struct State {
    std::array<Rank, most_ranks> ranks;
    std::uint8_t accidents, error;
  };

  Failing(int size, int broken) : size_(size), broken_(static_cast<Broken>(broken)) {}

  State first() const { return State{}; }
  bool is_over(const State& state) const {
    return std::all_of(state.ranks.begin(), state.ranks.begin() + size_,
                       [](const Rank& rank) { return rank.at == ended; });
  }
  const char* violation(const State& state) const {
    if (state.error == survivor_named) return "a rank is named that neither died nor was interrupted";
    if (state.error == arrived_missed) return "a rank is missed that had arrived";
    return nullptr;
  }

  template <class Emit>
  void steps(const State& state, const Emit& emit) const {
    for (int rank = 0; rank < size_; ++rank) {
      step(state, rank, emit);
      accidents(state, rank, emit);
    }
  }

 private:
  static unsigned bit(int rank) { return 1U << rank; }
  static bool has_died(const Rank& me, int rank) { return (me.deaths_noticed & bit(rank)) != 0; }
  bool is_gone(const State& state, int rank, int other) const {
    return has_died(state.ranks[rank], other) || state.ranks[other].has_failed != 0;
  }

  template <class Emit>
  void accidents(const State& before, int rank, const Emit& emit) const {
    const Rank& me = before.ranks[rank];
    for (int other = 0; other < size_; ++other)
      if (other != rank && before.ranks[other].ending == died && !has_died(me, other) && broken_ != death_not_noticed) {
        State state = before;
        state.ranks[rank].deaths_noticed = static_cast<std::uint8_t>(me.deaths_noticed | bit(other));
        emit(rank, "is told of a death", state);
      }
    if (me.at == ended || before.accidents == size_ - 1) return;
    State state = before;
    ++state.accidents;
    state.ranks[rank].at = ended;
    state.ranks[rank].ending = died;
    emit(rank, "dies", state, true);
    if (me.at != waits) return;
    state = before;
    ++state.accidents;
    state.ranks[rank].ending = interrupted;
    state.ranks[rank].at = say;
    emit(rank, "is interrupted", state, true);
  }

  template <class Emit>
  void step(const State& before, int rank, const Emit& emit) const {
    State state = before;
    Rank& me = state.ranks[rank];
    switch (me.at) {
      case arrive:
        me.arrived = ++me.operation;
        me.peer = rank == 0 ? 1 : 0;
        me.at = waits;
        return emit(rank, "arrives", state);
      case waits:
        if (is_ready(before, rank, me.peer)) {
          me.peer = static_cast<std::uint8_t>(me.peer + 1 == rank ? me.peer + 2 : me.peer + 1);
          if (me.peer >= size_ || me.is_in_chain != 0) go_on(me, rank);
          return emit(rank, "sees that a peer is ready", state);
        }
        me.seen = first_look(before, rank);
        me.at = look;
        return emit(rank, "looks at the others", state);
      case look:
        me.seen = second_look(before, rank);
        me.at = me.seen != 0 ? judge : waits;
        return emit(rank, "looks at the others again", state);
      case judge:
        name(state, rank);
        me.at = broken_ == cause_after_state ? fail : say;
        return emit(rank, "names a rank", state);
      case say:
        me.cause = me.named;
        me.at = broken_ == cause_after_state ? ended : fail;
        return emit(rank, "says whom it lost", state);
      case fail:
        if (broken_ != failure_not_told) me.has_failed = 1;
        if (me.ending == none) me.ending = raised;
        me.at = broken_ == cause_after_state ? say : ended;
        return emit(rank, "says that it has failed", state);
      default:
        return;
    }
  }

  // First every rank waits for all to arrive, then each for the one before it, which passes something on to it.
  static bool is_ready(const State& state, int rank, int other) {
    const Rank& me = state.ranks[rank];
    if (me.is_in_chain != 0) return other != rank - 1 || state.ranks[other].passed >= me.operation;
    return state.ranks[other].arrived >= me.operation;
  }
  void go_on(Rank& me, int rank) const {
    if (me.is_in_chain == 0 && rank > 0) {
      me.is_in_chain = 1;
      me.peer = static_cast<std::uint8_t>(rank - 1);
      return;
    }
    me.passed = me.operation;
    me.is_in_chain = 0;
    me.peer = 0;
    me.at = me.operation == operations ? ended : arrive;
    if (me.at == ended) me.ending = completed;
  }

  // Who is gone is seen before who has arrived: what a rank wrote before it went is still good.
  std::uint8_t first_look(const State& state, int rank) const {
    return broken_ == readiness_seen_first ? missing(state, rank) : gone(state, rank);
  }
  std::uint8_t second_look(const State& state, int rank) const {
    const Rank& me = state.ranks[rank];
    if (broken_ == arrived_are_missed) return me.seen;
    const unsigned other = broken_ == readiness_seen_first ? gone(state, rank) : missing(state, rank);
    return static_cast<std::uint8_t>(me.seen & other);
  }
  std::uint8_t gone(const State& state, int rank) const {
    unsigned set = 0;
    for (int other = 0; other < size_; ++other)
      if (other != rank && is_gone(state, rank, other)) set |= bit(other);
    return static_cast<std::uint8_t>(set);
  }
  std::uint8_t missing(const State& state, int rank) const {
    unsigned set = 0;
    for (int other = 0; other < size_; ++other)
      if (other != rank && !is_ready(state, rank, other)) set |= bit(other);
    return static_cast<std::uint8_t>(set);
  }

  void name(State& state, int rank) const {
    Rank& me = state.ranks[rank];
    int missed = -1;
    for (int other = 0; other < size_; ++other)
      if ((me.seen & bit(other)) != 0 && (missed < 0 || (has_died(me, other) && !has_died(me, missed)))) missed = other;
    if (is_ready(state, rank, missed)) state.error = arrived_missed;
    int culprit = missed;
    for (int steps = 0; steps < size_ && broken_ != cause_not_followed; ++steps) {
      const Rank& theirs = state.ranks[culprit];
      if (theirs.has_failed == 0 || theirs.cause == 0 || theirs.cause - 1 == rank) break;
      culprit = theirs.cause - 1;
    }
    const std::uint8_t ending = state.ranks[culprit].ending;
    if (ending != died && ending != interrupted) state.error = survivor_named;
    me.named = static_cast<std::uint8_t>(culprit + 1);
    me.seen = 0;
  }

  int size_;
  Broken broken_;
};

Outcome run(int ranks, int broken) { return explore(Failing(ranks, broken)); }

}  // namespace

std::vector<Case> failure_cases() {
  return cases_of("failure", {2, 3},
                  {{"whether a rank has arrived is seen before whether it is gone", 2},
                   {"a rank says that it has failed before it says whom it lost", 3},
                   {"the cause of a failure is not followed", 3},
                   {"a rank that fails does not say so", 3},
                   {"nobody notices a death", 2},
                   {"a rank that is gone is missed though it had arrived", 3}},
                  &run);
}

}  // namespace shim::model
