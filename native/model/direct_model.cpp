// Tensors that the others read where they are: whether all can be mapped is agreed on, and nobody's caller writes to
// its tensor again while another rank reads it and takes what it reads for good. Mirrors native/collectives/direct.cpp.
#include <algorithm>
#include <array>

#include "model/cases.hpp"

namespace shim::model {
namespace {

enum Broken {
  nothing,
  tried_before_mapped,      // told
  finished_before_read,     // told
  others_not_waited_for,    // in the end
  presence_not_asked,       // in the end
  overwritten_before_said,  // by a rank that gives up
};

constexpr int most_ranks = 3;
constexpr int operations = 2;
enum At : std::uint8_t {
  map,
  try_,
  hear,
  arrive,
  waits,
  read,
  reading,
  ask,
  tell,
  leave,
  give_up,
  returned,
  failed,
  over
};
enum Error : std::uint8_t { none, different_ways, overwritten };

struct Rank {
  std::uint8_t at, operation, peer, mapped, tried, all, arrived, finished, is_gone, is_spoilt, version;
};

class Direct {
 public:
  struct State {
    std::array<Rank, most_ranks> ranks;
    std::uint8_t given_up;  // how many ranks were interrupted
    std::uint8_t way;       // 0 unknown, 1 direct, 2 by the rings
    std::uint8_t error;
  };

  Direct(int size, int broken) : size_(size), broken_(static_cast<Broken>(broken)) {}

  State first() const { return State{}; }
  bool is_over(const State& state) const {
    return std::all_of(state.ranks.begin(), state.ranks.begin() + size_,
                       [](const Rank& rank) { return rank.at == over; });
  }
  const char* violation(const State& state) const {
    if (state.error == different_ways) return "two ranks go different ways";
    if (state.error == overwritten) return "a rank returns what was overwritten while it read it";
    return nullptr;
  }

  template <class Emit>
  void steps(const State& state, const Emit& emit) const {
    for (int rank = 0; rank < size_; ++rank) {
      step(state, rank, emit);
      interrupt(state, rank, emit);
    }
  }

 private:
  static bool waits_somewhere(At at) { return at == waits || at == read || at == reading || at == leave; }

  template <class Emit>
  void interrupt(const State& before, int rank, const Emit& emit) const {
    if (before.given_up != 0 || !waits_somewhere(static_cast<At>(before.ranks[rank].at))) return;
    State state = before;
    ++state.given_up;
    state.ranks[rank].at = give_up;
    if (broken_ == overwritten_before_said) ++state.ranks[rank].version;
    emit(rank, "is interrupted", state, true);
  }

  template <class Emit>
  void step(const State& before, int rank, const Emit& emit) const {
    State state = before;
    Rank& me = state.ranks[rank];
    switch (me.at) {
      case map:
        for (const std::uint8_t works : {1, 0}) {
          state = before;
          state.ranks[rank].mapped = works;
          state.ranks[rank].all = works;
          state.ranks[rank].at = try_;
          if (broken_ == tried_before_mapped) {
            state.ranks[rank].mapped = 0;
            state.ranks[rank].tried = 1;
          }
          emit(rank, works != 0 ? "maps what the others lend" : "cannot map it", state);
        }
        return;
      case try_:
        me.tried = 1;
        me.mapped = me.all;
        me.peer = peer_of(rank, 0);
        me.at = hear;
        return emit(rank, "says that it has tried", state);
      case hear: {
        const Rank& theirs = before.ranks[me.peer];
        if (theirs.tried == 0) return;
        me.all = me.all != 0 && theirs.mapped != 0;
        if (!go_to_next_peer(me, rank)) {
          const std::uint8_t way = me.all != 0 ? 1 : 2;
          if (state.way != 0 && state.way != way) state.error = different_ways;
          state.way = way;
          me.at = way == 1 ? arrive : over;
        }
        return emit(rank, "hears whether a peer could", state);
      }
      case arrive:
        me.version = ++me.operation;
        me.arrived = me.operation;
        me.is_spoilt = 0;
        me.at = waits;
        return emit(rank, "arrives, with its tensor written", state);
      case waits:
        return pass_peer(before, rank, before.ranks[me.peer].arrived, read, "sees that a peer has arrived", emit);
      case read:
        me.at = reading;
        if (broken_ == finished_before_read) me.finished = me.operation;
        return emit(rank, "begins to read a peer's tensor", state);
      case reading:
        if (before.ranks[me.peer].version != me.operation) me.is_spoilt = 1;
        me.at = go_to_next_peer(me, rank) ? read : broken_ == presence_not_asked ? tell : ask;
        return emit(rank, "has read a peer's tensor", state);
      case ask:
        if (before.ranks[me.peer].is_gone != 0) {
          me.at = give_up;
        } else if (!go_to_next_peer(me, rank)) {
          me.at = tell;
        }
        return emit(rank, "asks whether a peer is still there", state);
      case tell:
        me.finished = me.operation;
        me.at = broken_ == others_not_waited_for ? returned : leave;
        return emit(rank, "says that it has finished", state);
      case leave:
        return pass_peer(before, rank, before.ranks[me.peer].finished, returned, "sees that a peer has finished", emit);
      case give_up:
        me.is_gone = 1;
        me.at = failed;
        return emit(rank, "says that it gives up", state);
      case returned:
        if (me.is_spoilt != 0) state.error = overwritten;
        me.version = static_cast<std::uint8_t>(me.operation + 1);
        me.at = me.operation == operations ? over : arrive;
        return emit(rank, "returns, and its caller writes to its tensor", state);
      case failed:
        me.version = static_cast<std::uint8_t>(me.operation + 1);
        me.at = over;
        return emit(rank, "raises, and its caller writes to its tensor", state);
      default:
        return;
    }
  }

  // Waits for what a peer says to come to this operation; gives up when the peer has gone before.
  template <class Emit>
  void pass_peer(const State& before, int rank, std::uint8_t said, At then, const char* what, const Emit& emit) const {
    State state = before;
    Rank& me = state.ranks[rank];
    if (said >= me.operation) {
      if (!go_to_next_peer(me, rank)) me.at = then;
      return emit(rank, what, state);
    }
    if (before.ranks[me.peer].is_gone == 0) return;
    me.at = give_up;
    emit(rank, "sees that a peer has gone", state);
  }

  std::uint8_t peer_of(int rank, int index) const {
    return static_cast<std::uint8_t>(index == rank ? index + 1 : index);
  }
  bool go_to_next_peer(Rank& me, int rank) const {
    const int next = peer_of(rank, me.peer + 1);
    me.peer = next < size_ ? static_cast<std::uint8_t>(next) : peer_of(rank, 0);
    return next < size_;
  }

  int size_;
  Broken broken_;
};

Outcome run(int ranks, int broken) { return explore(Direct(ranks, broken)); }

}  // namespace

std::vector<Case> direct_cases() {
  return cases_of("direct", {2, 3},
                  {{"a rank says that it has tried before it says whether it could", 2},
                   {"a rank says that it has finished before it has read", 2},
                   {"a rank returns without waiting for the others to finish", 2},
                   {"a rank that has read does not ask whether the others are there", 2},
                   {"a rank that gives up lets its caller write before it says so", 2}},
                  &run);
}

}  // namespace shim::model
