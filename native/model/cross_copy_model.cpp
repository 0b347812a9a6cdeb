// A message that both ranks copy from tensor to tensor, chunk by chunk, until they meet: each chunk is copied by one of
// them, none is written once the receive has ended, and none counts that was read from a tensor given up. Mirrors
// native/cross_copy.cpp, with what native/point_to_point_offers.cpp makes of it.
#include <algorithm>
#include <array>

#include "cases.hpp"

namespace shim::model {
namespace {

enum Broken {
  nothing,
  ended_when_all_are_taken,
  not_closed,            // by a receive that is withdrawn
  not_waited_for_quiet,  // likewise
  told_before_written,
  not_given_back,  // what the sender could not write
  taken_in_two_steps,
  giving_up_not_asked_for,
  overwritten_before_said,  // by a sender that gives up
};

constexpr int chunks = 3;
enum At : std::uint8_t { take, took, copying, telling, giving_back, closing, quiet, giving_up, over };
enum Content : std::uint8_t { nobodys, right, wrong };

struct Rank {
  std::uint8_t at, chunk, front, back;  // the last two as it has seen them
};

class CrossCopy {
 public:
  struct State {
    Rank sender, receiver;
    std::uint8_t front, back, written, given_up;  // shared
    std::array<std::uint8_t, chunks> content;
    std::uint8_t is_overwritten, can_write, is_received, is_withdrawn, error;
  };

  CrossCopy(int, int broken) : broken_(static_cast<Broken>(broken)) {}

  State first() const {
    State state{};
    state.back = chunks;
    state.can_write = 1;
    return state;
  }
  bool is_over(const State& state) const { return state.sender.at == over && state.receiver.at == over; }
  const char* violation(const State& state) const {
    if (state.error == 1) return "a chunk is copied by both";
    if (state.error == 2) return "the sender writes to a tensor whose receive has ended";
    const bool is_right = std::all_of(state.content.begin(), state.content.end(), [](auto c) { return c == right; });
    return state.is_received != 0 && !is_right ? "a message is received of which not all is right" : nullptr;
  }

  template <class Emit>
  void steps(const State& before, const Emit& emit) const {
    send(before, emit);
    receive(before, emit);
  }

 private:
  // Takes a chunk, from the back or from the front, in one step or, broken, in two.
  template <class Emit>
  bool take_chunk(const State& before, bool is_sender, const Emit& emit) const {
    State state = before;
    Rank& me = is_sender ? state.sender : state.receiver;
    if (me.at == take) {
      if (before.front >= before.back) return false;
      me.front = before.front;
      me.back = before.back;
      me.at = took;
      if (broken_ == taken_in_two_steps) {
        emit(is_sender ? 0 : 1, "sees which chunks are left", state);
        return true;
      }
    }
    me.chunk = is_sender ? static_cast<std::uint8_t>(me.back - 1) : me.front;
    state.front = is_sender ? me.front : static_cast<std::uint8_t>(me.front + 1);
    state.back = is_sender ? static_cast<std::uint8_t>(me.back - 1) : me.back;
    me.at = copying;
    if (is_sender && broken_ == told_before_written) ++state.written;
    const Rank& other = is_sender ? state.receiver : state.sender;
    if (other.at == copying && other.chunk == me.chunk) state.error = 1;
    emit(is_sender ? 0 : 1, "takes a chunk", state);
    return true;
  }

  template <class Emit>
  void send(const State& before, const Emit& emit) const {
    State state = before;
    Rank& me = state.sender;
    switch (me.at) {
      case take:
        me.at = giving_up;
        if (broken_ == overwritten_before_said) state.is_overwritten = 1;
        emit(0, "is interrupted", state, true);
        if (before.can_write != 0 && take_chunk(before, true, emit)) return;
        if (before.receiver.at != over) return;
        state = before;
        state.sender.at = over;
        return emit(0, "sees that its receiver is done with it", state);
      case took:
        take_chunk(before, true, emit);
        return;
      case copying:
        if (before.receiver.at == over) state.error = 2;
        state.content[me.chunk] = right;
        me.at = broken_ == told_before_written ? take : telling;
        emit(0, "has written a chunk", state);
        state = before;
        state.can_write = 0;
        state.sender.at = giving_back;
        return emit(0, "cannot write", state);
      case telling:
        ++state.written;
        me.at = take;
        return emit(0, "says that it has written a chunk", state);
      case giving_back:
        if (broken_ != not_given_back) ++state.back;
        me.at = take;
        return emit(0, "gives a chunk back", state);
      case giving_up:
        state.given_up = 1;
        state.is_overwritten = 1;
        me.at = over;
        return emit(0, "says that it gives up, and its caller writes to its tensor", state);
      default:
        return;
    }
  }

  template <class Emit>
  void receive(const State& before, const Emit& emit) const {
    State state = before;
    Rank& me = state.receiver;
    const bool is_quiet = before.written >= chunks - before.back;
    switch (me.at) {
      case take:
        me.at = broken_ == not_closed ? quiet : closing;
        state.is_withdrawn = 1;
        emit(1, "is interrupted", state, true);
        if (take_chunk(before, false, emit)) return;
        state = before;
        if (before.given_up != 0 && broken_ != giving_up_not_asked_for) {
          me.at = closing;  // as the group has failed
          state.is_withdrawn = 1;
          return emit(1, "sees that its sender has given up", state);
        }
        if (!is_quiet && broken_ != ended_when_all_are_taken) return;
        state.is_received = 1;
        me.at = over;
        return emit(1, "has received the message", state);
      case took:
        take_chunk(before, false, emit);
        return;
      case copying:
        state.content[me.chunk] = before.is_overwritten != 0 ? wrong : right;
        me.at = take;
        return emit(1, "has read a chunk", state);
      case closing:
        state.front = before.back;
        me.at = quiet;
        return emit(1, "closes", state);
      case quiet:
        if (!is_quiet && broken_ != not_waited_for_quiet) return;
        me.at = over;
        return emit(1, "raises, and its caller uses its tensor", state);
      default:
        return;
    }
  }

  Broken broken_;
};

Outcome run(int ranks, int broken) { return explore(CrossCopy(ranks, broken)); }

}  // namespace

std::vector<Case> cross_copy_cases() {
  return cases_of("cross_copy", {2},
                  {{"a receive ends when all chunks are taken", 2},
                   {"a receive that is withdrawn lets the sender take chunks", 2},
                   {"a receive that is withdrawn does not wait for the chunk being written", 2},
                   {"a chunk is told written before it is", 2},
                   {"a chunk that could not be written is not given back", 2},
                   {"a chunk is taken in two steps", 2},
                   {"a receive does not ask whether its sender has given up", 2},
                   {"a sender that gives up lets its caller write before it says so", 2}},
                  &run);
}

}  // namespace shim::model
