// Sleeping until something changes: announced first, then looked once more, and woken by whoever changed something.
// Mirrors sleep_until_rung() and ring_bell() of native/group/group.cpp, without the slice of time after which a sleeper
// looks anyway.
#include <array>

#include "model/cases.hpp"

namespace shim::model {
namespace {

enum Broken {
  nothing,
  not_announced,
  looked_before_announced,  // and not again
  rings_seen_late,          // read after everything was looked at
  woken_without_ring,       // the number of rings stays
  rung_before_change,
  sleepers_seen_early,  // read before the change
};

constexpr int most_ranks = 3;
constexpr int changes = 3;
enum At : std::uint8_t {
  poll,
  announce,
  see_rings,
  look,
  see_rings_late,
  sleep,
  sleeping,
  change,
  see_sleepers,
  ring,
  wake,
  over
};

struct Rank {
  std::uint8_t at, awaited, seen;
};

// Rank 0 waits for each change of each other rank; these make theirs without waiting for anybody.
class Doorbell {
 public:
  struct State {
    std::array<Rank, most_ranks> ranks;
    std::array<std::uint8_t, most_ranks> changed;  // how often a rank has changed something
    std::uint8_t sleepers, rings;
  };

  Doorbell(int size, int broken) : size_(size), broken_(static_cast<Broken>(broken)) {}

  State first() const {
    State state{};
    state.ranks[0].at = start_of_waiting();
    for (int rank = 1; rank < size_; ++rank) state.ranks[rank].at = start_of_change();
    return state;
  }
  bool is_over(const State& state) const { return state.ranks[0].at == over; }
  const char* violation(const State&) const { return nullptr; }

  template <class Emit>
  void steps(const State& before, const Emit& emit) const {
    waiter_steps(before, emit);
    for (int rank = 1; rank < size_; ++rank) changer_steps(before, rank, emit);
  }

 private:
  At start_of_waiting() const { return poll; }
  At start_of_change() const {
    return broken_ == sleepers_seen_early ? see_sleepers : broken_ == rung_before_change ? see_sleepers : change;
  }

  bool is_ready(const State& state) const {
    for (int rank = 1; rank < size_; ++rank)
      if (state.changed[rank] < state.ranks[0].awaited + 1) return false;
    return true;
  }

  void go_on(State& state) const {
    Rank& me = state.ranks[0];
    if (me.at != poll && broken_ != not_announced) state.sleepers = 0;
    me.at = ++me.awaited == changes ? over : start_of_waiting();
  }

  template <class Emit>
  void waiter_steps(const State& before, const Emit& emit) const {
    State state = before;
    Rank& me = state.ranks[0];
    switch (me.at) {
      case poll:
        if (is_ready(before))
          go_on(state);
        else
          me.at = broken_ == not_announced ? see_rings : announce;
        return emit(0, "polls", state);
      case announce:
        state.sleepers = 1;
        me.at = broken_ == looked_before_announced || broken_ == rings_seen_late ? look : see_rings;
        return emit(0, "announces a sleeper", state);
      case see_rings:
        me.seen = state.rings;
        me.at = look;
        return emit(0, "sees how often was rung", state);
      case look:
        if (broken_ != looked_before_announced && is_ready(before))
          go_on(state);
        else
          me.at = broken_ == looked_before_announced || broken_ == rings_seen_late ? see_rings_late : sleep;
        return emit(0, "looks once more", state);
      case see_rings_late:
        me.seen = state.rings;
        me.at = sleep;
        return emit(0, "sees how often was rung, after it has looked", state);
      case sleep:
        if (state.rings != me.seen) {
          state.sleepers = 0;
          me.at = poll;
        } else {
          me.at = sleeping;
        }
        return emit(0, "goes to sleep, unless it was rung", state);
      default:
        return;
    }
  }

  template <class Emit>
  void changer_steps(const State& before, int rank, const Emit& emit) const {
    State state = before;
    Rank& me = state.ranks[rank];
    switch (me.at) {
      case change:
        ++state.changed[rank];
        me.at = broken_ == sleepers_seen_early ? ring : see_sleepers;
        if (broken_ == rung_before_change) end_change(state, rank);
        return emit(rank, "changes something", state);
      case see_sleepers:
        me.seen = state.sleepers;
        if (broken_ == sleepers_seen_early)
          me.at = change;
        else
          me.at = ring;
        return emit(rank, "sees whether somebody sleeps", state);
      case ring:
        if (me.seen == 0) {
          if (broken_ == rung_before_change)
            me.at = change;
          else
            end_change(state, rank);
          return emit(rank, "has nobody to wake", state);
        }
        if (broken_ != woken_without_ring) ++state.rings;
        me.at = wake;
        return emit(rank, "rings", state);
      case wake:
        if (state.ranks[0].at == sleeping) {
          state.ranks[0].at = poll;
          state.sleepers = 0;
        }
        if (broken_ == rung_before_change)
          me.at = change;
        else
          end_change(state, rank);
        return emit(rank, "wakes the sleeper", state);
      default:
        return;
    }
  }

  void end_change(State& state, int rank) const {
    state.ranks[rank].seen = 0;
    state.ranks[rank].at = state.changed[rank] == changes ? over : start_of_change();
  }

  int size_;
  Broken broken_;
};

Outcome run(int ranks, int broken) { return explore(Doorbell(ranks, broken)); }

}  // namespace

std::vector<Case> doorbell_cases() {
  return cases_of("doorbell", {2, 3},
                  {{"a sleeper does not announce itself", 2},
                   {"a sleeper does not look again after it has announced itself", 2},
                   {"the rings are seen after the last look", 2},
                   {"a sleeper is woken without a ring", 2},
                   {"the bell is rung before the change", 2},
                   {"sleepers are looked for before the change", 2}},
                  &run);
}

}  // namespace shim::model
