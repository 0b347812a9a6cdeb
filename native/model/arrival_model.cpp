// Arrivals: numbers, two lines a rank used in turn, refused calls that wait for nobody, one verdict on every rank.
// Mirrors native/agreement/arrival.cpp.
#include <algorithm>
#include <array>

#include "model/cases.hpp"

namespace shim::model {
namespace {

enum Broken {
  nothing,
  told_before_written,  // the number is stored before what it tells of
  one_line,             // used by every operation
  refused_waits_not,    // next_sequence() does not wait for what a refused call did not
  first_peer_only,      // is waited for
  one_operation_less,   // is waited for
  two_compare,          // a rank compares its call with one other
  refusal_agrees,       // with whatever the others call
  refused_is_not_counted,
  never_told,
};

constexpr int most_ranks = 3;
constexpr int refused = 2;  // a call; 0 and 1 are calls that do not fit together
enum At : std::uint8_t { choose, confirm, write, finish_writing, tell, wait, read };
enum Error : std::uint8_t { none, not_of_this_operation, other_verdict, agreed_on_nothing };

struct Line {
  std::uint8_t sequence, operation, call, is_whole;
};
struct Rank {
  std::uint8_t at, sequence, confirmed, peer, call, agrees;
};

class Arrival {
 public:
  struct State {
    std::array<Rank, most_ranks> ranks;
    std::array<std::array<Line, 2>, most_ranks> lines;
    std::array<std::uint8_t, 5> verdicts;  // by operation: 0 unknown, 1 agreed, 2 not
    std::uint8_t error;
  };

  Arrival(int size, int broken) : size_(size), operations_(size == 2 ? 4 : 3), broken_(static_cast<Broken>(broken)) {}

  State first() const { return State{}; }
  bool is_over(const State& state) const {
    for (int rank = 0; rank < size_; ++rank)
      if (state.ranks[rank].at != choose || state.ranks[rank].sequence < operations_) return false;
    return true;
  }
  const char* violation(const State& state) const {
    if (state.error == not_of_this_operation) return "a rank reads a line that is not of its operation";
    if (state.error == other_verdict) return "two ranks come to different verdicts";
    if (state.error == agreed_on_nothing) return "a rank goes on though the calls do not fit";
    return nullptr;
  }

  template <class Emit>
  void steps(const State& state, const Emit& emit) const {
    for (int rank = 0; rank < size_; ++rank) step(state, rank, emit);
  }

 private:
  Line& line(State& state, int rank, int sequence) const {
    return state.lines[rank][broken_ == one_line ? 0 : sequence & 1];
  }
  bool has_arrived(const State& state, int rank, int sequence) const {
    const Line& theirs = state.lines[rank][broken_ == one_line ? 0 : sequence & 1];
    return theirs.sequence >= sequence - (broken_ == one_operation_less ? 1 : 0);
  }
  // The next peer that `rank` waits for, or size_ when it has seen them all.
  std::uint8_t after(int rank, int peer) const {
    const int next = peer + 1 == rank ? peer + 2 : peer + 1;
    return static_cast<std::uint8_t>(broken_ == first_peer_only ? size_ : std::min(next, size_));
  }
  std::uint8_t first_peer(int rank) const { return rank == 0 ? 1 : 0; }

  template <class Emit>
  void step(const State& before, int rank, const Emit& emit) const {
    State state = before;
    Rank& me = state.ranks[rank];
    switch (me.at) {
      case choose:
        if (me.sequence >= operations_) return;
        for (std::uint8_t call = 0; call <= refused; ++call) {
          me = before.ranks[rank];
          me.call = call;
          me.peer = first_peer(rank);
          me.at = confirm;
          emit(rank, call == refused ? "is refused a call" : call == 0 ? "calls one thing" : "calls another", state);
        }
        return;
      case confirm:
        if (me.confirmed < me.sequence && broken_ != refused_waits_not) {
          if (me.peer < size_) {
            if (!has_arrived(before, me.peer, me.sequence)) return;
            me.peer = after(rank, me.peer);
            return emit(rank, "sees that a peer arrived at what was before", state);
          }
          me.confirmed = me.sequence;
        }
        if (!(broken_ == refused_is_not_counted && me.call == refused)) ++me.sequence;
        me.at = broken_ == told_before_written ? tell : write;
        return emit(rank, "takes the next number", state);
      case write:
        line(state, rank, me.sequence) = {line(state, rank, me.sequence).sequence, me.sequence, me.call, 0};
        me.at = finish_writing;
        return emit(rank, "begins to write its line", state);
      case finish_writing:
        line(state, rank, me.sequence).is_whole = 1;
        me.at = tell;
        if (broken_ == told_before_written) go_on_after_telling(me, rank);
        return emit(rank, "has written its line", state);
      case tell:
        if (broken_ != never_told) line(state, rank, me.sequence).sequence = me.sequence;
        if (broken_ == told_before_written)
          me.at = write;
        else
          go_on_after_telling(me, rank);
        return emit(rank, "stores its number", state);
      case wait:
        if (!has_arrived(before, me.peer, me.sequence)) return;
        me.peer = after(rank, me.peer);
        if (me.peer >= size_) {
          me.confirmed = me.sequence;
          me.at = read;
          me.peer = 0;
          me.agrees = 1;
        }
        return emit(rank, "sees that a peer has arrived", state);
      case read:
        return read_line(state, rank, emit);
    }
  }

  void go_on_after_telling(Rank& me, int rank) const {
    me.at = me.call == refused ? choose : wait;
    me.peer = first_peer(rank);
  }

  template <class Emit>
  void read_line(State& state, int rank, const Emit& emit) const {
    Rank& me = state.ranks[rank];
    const Line& theirs = line(state, me.peer, me.sequence);
    if (theirs.is_whole == 0 || theirs.operation != me.sequence) state.error = not_of_this_operation;
    const bool is_compared = broken_ != two_compare || me.peer == (rank + 1) % size_;
    const bool fits = theirs.call == me.call || (broken_ == refusal_agrees && theirs.call == refused);
    if (is_compared && !fits) me.agrees = 0;
    if (++me.peer == size_) {
      const std::uint8_t verdict = me.agrees != 0 ? 1 : 2;
      std::uint8_t& known = state.verdicts[me.sequence];
      if (known != 0 && known != verdict) state.error = other_verdict;
      for (int peer = 0; peer < size_; ++peer)
        if (verdict == 1 && line(state, peer, me.sequence).call != me.call) state.error = agreed_on_nothing;
      known = verdict;
      me.at = choose;
      me.peer = 0;
      me.agrees = 0;
    }
    emit(rank, "reads a line", state);
  }

  int size_;
  int operations_;
  Broken broken_;
};

Outcome run(int ranks, int broken) { return explore(Arrival(ranks, broken)); }

}  // namespace

std::vector<Case> arrival_cases() {
  return cases_of("arrival", {2, 3},
                  {{"the number is stored before the line is written", 2},
                   {"one line for every operation", 2},
                   {"no wait for what a refused call did not wait for", 2},
                   {"only the first peer is waited for", 3},
                   {"the operation before is waited for", 2},
                   {"a rank compares with one other only", 3},
                   {"a refusal agrees with anything", 3},
                   {"a refused call takes no number", 2},
                   {"the number is never stored", 2}},
                  &run);
}

}  // namespace shim::model
