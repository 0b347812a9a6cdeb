// Ranks that give an operation up while the others arrive: all get the result, or none does. "Given" is what the others
// need of a rank: its arrival, or its data too. Mirrors native/group/withdrawal.cpp.
#include <algorithm>
#include <array>

#include "model/cases.hpp"

namespace shim::model {
namespace {

enum Broken {
  nothing,
  just_goes,  // without a word in its line
  looks_before_it_says,
  never_stays,    // where all have given all
  looked_early,   // at a line when its rank had given, and not again
  does_not_wait,  // for what becomes of a rank that is about to give up
};

constexpr int most_ranks = 3;
enum At : std::uint8_t { give, wait, look, say, count, decide, over };
enum Line : std::uint8_t { none, given, withdrawing, withdrawn };
enum Ending : std::uint8_t { under_way, result, raised };

struct Rank {
  std::uint8_t at, line, ending, peer, may_stay;
};

class Withdrawing {
 public:
  struct State {
    std::array<Rank, most_ranks> ranks;
  };

  Withdrawing(int size, int broken) : size_(size), broken_(static_cast<Broken>(broken)) {}

  State first() const { return State{}; }
  bool is_over(const State& state) const {
    return std::all_of(state.ranks.begin(), state.ranks.begin() + size_,
                       [](const Rank& rank) { return rank.at == over; });
  }
  const char* violation(const State& state) const {
    const auto has = [&](Ending ending) {
      return std::any_of(state.ranks.begin(), state.ranks.begin() + size_,
                         [ending](const Rank& rank) { return rank.ending == ending; });
    };
    return has(result) && has(raised) ? "one rank has the result, and another has given it up" : nullptr;
  }

  template <class Emit>
  void steps(const State& state, const Emit& emit) const {
    for (int rank = 0; rank < size_; ++rank) step(state, rank, emit);
  }

 private:
  static void end(Rank& me, Ending ending) {
    me.at = over;
    me.ending = ending;
  }
  static bool has_given(const Rank& rank) { return rank.line == given || rank.line == withdrawing; }

  template <class Emit>
  void step(const State& before, int rank, const Emit& emit) const {
    State state = before;
    Rank& me = state.ranks[rank];
    const Rank& peer = before.ranks[me.peer % most_ranks];
    switch (me.at) {
      case give:
        me.line = given;
        me.at = wait;
        return emit(rank, "gives all that the others need", state);
      case wait:
        if (peer.line != none) {
          if (broken_ == looked_early && peer.line == withdrawn) {
            end(me, raised);
            return emit(rank, "sees at once that a peer has withdrawn", state);
          }
          if (++me.peer == size_) {
            me.peer = 0;
            me.at = look;
            if (broken_ == looked_early) end(me, result);
          }
          return emit(rank, "sees that a peer has given", state);
        }
        me.at = broken_ == looks_before_it_says ? count : say;
        me.peer = 0;
        me.may_stay = 1;
        if (broken_ == just_goes) end(me, raised);
        return emit(rank, "wants to give up", state, true);
      case look:
        if (peer.line == withdrawing && broken_ != does_not_wait) return;
        if (peer.line == withdrawn) {
          end(me, raised);
          return emit(rank, "sees that a peer has withdrawn", state);
        }
        if (++me.peer == size_) end(me, result);
        return emit(rank, "looks at a line", state);
      case say:
        me.line = withdrawing;
        me.at = broken_ == looks_before_it_says ? decide : count;
        return emit(rank, "says that it is about to give up", state);
      case count:
        if (!has_given(peer)) me.may_stay = 0;
        if (++me.peer == size_) {
          me.peer = 0;
          me.at = broken_ == looks_before_it_says ? say : decide;
        }
        return emit(rank, "looks whether a peer has given all", state);
      case decide:
        if (broken_ == never_stays) me.may_stay = 0;
        me.line = me.may_stay != 0 ? given : withdrawn;
        if (me.may_stay != 0)
          me.at = wait;
        else
          end(me, raised);
        return emit(rank, me.may_stay != 0 ? "stays" : "withdraws", state);
      case over:
        return;
    }
  }

  int size_;
  Broken broken_;
};

Outcome run(int ranks, int broken) { return explore(Withdrawing(ranks, broken)); }

}  // namespace

std::vector<Case> withdrawal_cases() {
  return cases_of("withdrawal", {2, 3},
                  {{"a rank gives up without a word", 2},
                   {"it looks at the others before it says so", 2},
                   {"it goes though all have given all", 2},
                   {"a line is looked at when its rank has given, not last", 3},
                   {"nobody waits for what becomes of it", 2}},
                  &run);
}

}  // namespace shim::model
