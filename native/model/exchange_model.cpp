// The ring: slots that are filled a step ahead, read, made, and filled again; the first one before the arrival. Two
// ranks take turns with their rings, and any two with the cells that they have for each other, which needs more than
// that a slot's own readers are done: when a rank fills a slot, nobody needs any rank's of the same index any more.
// Mirrors native/collectives/exchange.hpp, with two slots, or three where something is made of
// them, instead of four: so they come round sooner. Whether a slot is written through the caches or past them
// (native/machine/slot_stores.hpp) makes no other order: its writer alone decides that, nobody waits for it, and the
// stores past the caches end before the slot is told.
#include <algorithm>

#include "model/cases.hpp"
#include "model/exchange_state.hpp"

namespace shim::model {
namespace {

using namespace ring;

class Exchange {
 public:
  struct State {
    std::array<Rank, most_ranks> ranks;
    std::array<std::array<Slot, most_slots>, most_ranks> rings;
    std::array<std::uint8_t, operations + 1> disagreed;  // by operation: 0 not settled, 1 they agree, 2 they do not
    std::uint8_t error;
  };

  Exchange(int size, int broken, bool makes) : size_(size), broken_(static_cast<Broken>(broken)), makes_(makes) {}

  State first() const { return State{}; }
  bool is_over(const State& state) const {
    return std::all_of(state.ranks.begin(), state.ranks.begin() + size_,
                       [](const Rank& rank) { return rank.at == over; });
  }
  const char* violation(const State& state) const {
    if (state.error == other_content) return "a rank reads a slot with another chunk in it";
    if (state.error == written_meanwhile) return "a slot is written while it is read";
    if (state.error == needed_still) return "a slot is written while a rank needs one that it may take turns with";
    return nullptr;
  }
  template <class Emit>
  void steps(const State& state, const Emit& emit) const {
    for (int rank = 0; rank < size_; ++rank) step(state, rank, emit);
  }

 private:
  int slots() const { return makes_ && broken_ != two_slots ? 3 : 2; }
  bool takes_turns(int rank) const { return size_ == 2 && (broken_ != takes_no_turn || rank == 0); }
  Slot& slot(State& state, int rank, int number) const {
    const int turn = takes_turns(rank) ? number / slots() % 2 : 0;
    return state.rings[rank ^ turn][number % slots()];
  }

  // Whether who has read a slot writes to its lines what is there, before it tells that it is done.
  bool claims() const { return size_ == 2 || broken_ == claimed_by_all; }

  bool is_free(const State& state, int rank, int number) const {
    const int wanted = number - slots() + (broken_ == filled_too_soon ? -1 : 0);
    if (wanted <= state.ranks[rank].steps_over) return true;
    for (int peer = 0; peer < size_; ++peer) {
      if (broken_ == free_for_one_peer && peer != (rank + 1) % size_) continue;
      if (peer != rank && state.ranks[peer].done < wanted) return false;
    }
    return true;
  }
  bool is_filled(const State& state, int peer, const Rank& me, int number) const {
    const Rank& theirs = state.ranks[peer];
    const bool before = theirs.filled_of[me.operation & 1] == me.operation || broken_ == first_is_not_waited_for;
    return (me.step == 0 && before) || theirs.ready >= number || broken_ == read_without_waiting;
  }

  // Of the chunks: whatever a rank fills or reads from now on is none before that.
  int oldest_needed(const Rank& rank) const { return rank.base + rank.step + (makes_ && rank.step > 0 ? 0 : 1); }

  // In two steps, between which it must not be read. `then` follows; `ready` is told unless the arrival does.
  template <class Emit>
  void begin_filling(State& state, int rank, int number, At then, const Emit& emit) const {
    Slot& mine = slot(state, rank, number);
    if (mine.is_being_written != 0) state.error = written_meanwhile;
    for (int peer = 0; peer < size_; ++peer)
      if (peer != rank && oldest_needed(state.ranks[peer]) <= number - slots()) state.error = needed_still;
    for (const Rank& theirs : state.ranks) {
      const bool reads = theirs.at == reading || theirs.at == making || theirs.at == taking;
      const int wanted = theirs.base + theirs.step + 1 - (theirs.at == taking ? 1 : 0);
      if (reads && &slot(state, theirs.peer, wanted) == &mine) state.error = written_meanwhile;
    }
    mine = {static_cast<std::uint8_t>(number), 1, 0};
    state.ranks[rank].at = then;
    if (broken_ == told_before_filled && then == filled) state.ranks[rank].ready = static_cast<std::uint8_t>(number);
    emit(rank, "begins to fill a slot", state);
  }

  template <class Emit>
  void step(const State& before, int rank, const Emit& emit) const {
    State state = before;
    Rank& me = state.ranks[rank];
    const int number = me.base + me.step + 1;
    switch (me.at) {
      case begin:
        me.at = me.operation == operations ? over : wait_first;
        if (me.at == over) return emit(rank, "has come to the end", state);
        ++me.operation;
        me.step = me.prefilled = 0;
        return emit(rank, "begins an operation, and is going to fill the first slot", state);
      case wait_first:
        if (rank == 0) {  // too large for it on this rank: so both ways are taken beside each other
          me.at = arrive;
          return emit(rank, "fills nothing before", state);
        }
        if (!is_free(before, rank, number)) return;
        return begin_filling(state, rank, number, fill_first, emit);
      case fill_first:
        slot(state, rank, number).is_being_written = 0;
        me.prefilled = 1;
        me.at = arrive;
        return emit(rank, "has filled the first slot", state);
      case arrive:
        me.filled_of[me.operation & 1] = me.prefilled != 0 ? me.operation : std::uint8_t{0};
        me.arrived = me.operation;
        me.at = waits;
        return emit(rank, "arrives", state);
      case waits:
        return settle(before, rank, emit);
      case fill:
        if (to_fill(me) > me.base + steps_of(me)) {
          begin_reading(me, rank);
          return emit(rank, "has nothing more to fill", state);
        }
        if (!is_free(before, rank, to_fill(me))) return;
        return begin_filling(state, rank, to_fill(me), filled, emit);
      case filled:
        slot(state, rank, to_fill(me)).is_being_written = 0;
        me.ready = static_cast<std::uint8_t>(to_fill(me));
        me.at = fill;
        if (to_fill(me) > number)
          begin_reading(me, rank);
        else
          me.prefilled = 1;
        return emit(rank, "has filled a slot", state);
      case read:
        if (rank == 1 && me.operation == rank_1_reads_nothing) {
          finish(me, number);
          return emit(rank, "has nothing to read", state);
        }
        [[fallthrough]];
      case make:
        if (!is_filled(before, me.peer, me, number)) return;
        check(state, me.peer, number);
        if (broken_ == done_before_read && me.at == read) me.done = static_cast<std::uint8_t>(number);
        if (broken_ == made_too_soon && me.at == make) me.made = static_cast<std::uint8_t>(number);
        me.at = me.at == read ? reading : making;
        return emit(rank, "begins to read a slot", state);
      case reading:
        check(state, me.peer, number);
        if (claims()) {
          slot(state, me.peer, number).is_being_written = 1;
          if (broken_ == claimed_when_done) me.done = static_cast<std::uint8_t>(number);
          me.at = claiming;
          return emit(rank, "has read a slot, and begins to claim it", state);
        }
        me.at = read;
        if (!go_to_next_peer(me, rank)) finish(me, number);
        return emit(rank, "has read a slot", state);
      case claiming:
        slot(state, me.peer, number).is_being_written = 0;
        me.at = read;
        if (!go_to_next_peer(me, rank)) finish(me, number);
        return emit(rank, "has claimed a slot", state);
      case making:
        check(state, me.peer, number);
        me.at = make;
        if (!go_to_next_peer(me, rank)) {
          slot(state, rank, number).made = static_cast<std::uint8_t>(number);
          me.made = static_cast<std::uint8_t>(number);
          me.peer = peer_of(rank, 0);
          if (me.step > 0) {
            me.at = take;  // of the step before
          } else {
            ++me.step;
            me.at = me.step < steps_of(me) ? fill : take;
          }
        }
        return emit(rank, "has made something of a slot", state);
      case take:
        if (before.ranks[me.peer].made < number - 1 && broken_ != made_is_not_waited_for) return;
        check_made(state, me.peer, number - 1);
        me.at = taking;
        return emit(rank, "begins to take what was made", state);
      case taking:
        check_made(state, me.peer, number - 1);
        me.at = take;
        if (!go_to_next_peer(me, rank)) finish_taking(me, number - 1);
        return emit(rank, "has taken what was made", state);
      default:
        return;
    }
  }

  // Operations of one step, for which the arrivals tell all, and longer ones take turns.
  static int steps_of(const Rank& me) { return me.operation % 2 == 0 ? 1 : most_steps; }
  // The first slot, if it was not filled before the arrival, then always the one of the step after this one.
  static int to_fill(const Rank& me) { return me.base + me.step + (me.step == 0 && me.prefilled == 0 ? 1 : 2); }
  void begin_reading(Rank& me, int rank) const {
    me.at = makes_ ? make : read;
    me.peer = peer_of(rank, 0);
  }

  // All have arrived: do they agree? Either is possible; whoever comes first settles it for all.
  template <class Emit>
  void settle(const State& before, int rank, const Emit& emit) const {
    for (int peer = 0; peer < size_; ++peer)
      if (before.ranks[peer].arrived < before.ranks[rank].operation) return;
    const std::uint8_t known = before.disagreed[before.ranks[rank].operation];
    for (std::uint8_t verdict = 1; verdict <= 2; ++verdict) {
      if (known != 0 && known != verdict) continue;
      State state = before;
      Rank& me = state.ranks[rank];
      state.disagreed[me.operation] = verdict;
      me.steps_over = static_cast<std::uint8_t>(me.base + (broken_ == arrival_tells_of_itself ? steps_of(me) : 0));
      me.at = verdict == 1 ? fill : begin;
      if (verdict == 2 && broken_ == steps_go_on_after_mismatch && rank == 1) ++me.base;
      emit(rank, verdict == 1 ? "finds that they agree" : "finds that they disagree", state);
    }
  }

  void check(State& state, int peer, int number) const {
    const Slot& theirs = slot(state, peer, number);
    if (theirs.number != number || theirs.is_being_written != 0) state.error = other_content;
  }
  void check_made(State& state, int peer, int number) const {
    check(state, peer, number);
    if (slot(state, peer, number).made != number) state.error = other_content;
  }

  std::uint8_t peer_of(int rank, int index) const {
    return static_cast<std::uint8_t>(index == rank ? index + 1 : index);
  }
  bool go_to_next_peer(Rank& me, int rank) const {
    const int next_peer = peer_of(rank, me.peer + 1);
    me.peer = next_peer < size_ ? static_cast<std::uint8_t>(next_peer) : peer_of(rank, 0);
    return next_peer < size_;
  }
  void finish(Rank& me, int number) const {
    me.done = static_cast<std::uint8_t>(number);
    ++me.step;
    go_on_or_end(me, steps_of(me));
  }
  // Taking is a step behind, so there is one more of them.
  void finish_taking(Rank& me, int number) const {
    me.done = static_cast<std::uint8_t>(number);
    if (++me.step == steps_of(me))
      me.at = take;
    else
      go_on_or_end(me, steps_of(me) + 1);
  }
  static void go_on_or_end(Rank& me, int end) {
    me.at = me.step < end ? fill : begin;
    if (me.at == fill) return;
    me.base = static_cast<std::uint8_t>(me.base + steps_of(me));
    me.step = 0;
  }

  int size_;
  Broken broken_;
  bool makes_;
};

Outcome run(int ranks, int broken) { return explore(Exchange(ranks, broken, false)); }
Outcome run_making(int ranks, int broken) {
  return explore(Exchange(ranks, broken == 0 ? 0 : broken + claimed_by_all, true));
}

}  // namespace

std::vector<Case> exchange_cases() {
  std::vector<Case> cases = cases_of("exchange", {2, 3},
                                     {{"a slot is filled one step too soon", 2},
                                      {"only one peer is asked whether a slot is free", 3},
                                      {"ready is told before the slot is filled", 2},
                                      {"done is told before the slot is read", 2},
                                      {"nobody waits for a slot to be filled", 2},
                                      {"a first slot counts as filled before the arrival", 2},
                                      {"a rank counts the steps of a refused operation", 2},
                                      {"one of two ranks takes no turns", 2},
                                      {"an arrival is taken to tell of the operation itself", 2},
                                      {"a slot is claimed when it was told that it is read", 2},
                                      {"a slot is claimed that others read as well", 3}},
                                     &run);
  const std::vector<Case> making = cases_of("making", {2, 3},
                                            {{"made is told before it is made", 2},
                                             {"nobody waits for what is made", 2},
                                             {"there are two slots for what is filled, made and taken", 2}},
                                            &run_making);
  cases.insert(cases.end(), making.begin(), making.end());
  return cases;
}

}  // namespace shim::model
