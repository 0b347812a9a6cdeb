// Two messages that both ranks copy from tensor to tensor, chunk by chunk, until they meet: each chunk is copied by one
// of them, none is written once the receive has ended, and none counts that was read from a tensor given up. Mirrors
// native/messages/lent_copy.cpp, with what native/messages/point_to_point_offers.cpp makes of it.
#include <algorithm>
#include <array>

#include "model/cases.hpp"

namespace shim::model {
namespace {

enum Broken {
  nothing,
  ended_when_all_are_taken,
  not_closed,            // by a receive that is withdrawn
  not_waited_for_quiet,  // likewise
  told_before_written,
  taken_in_two_steps,
  giving_up_not_asked_for,
  overwritten_before_said,  // by a sender that gives up
  left_is_quiet,
  gone_on_with,         // by a sender that has given up
  answer_not_numbered,  // whatever was accepted before is taken for this
};

constexpr int messages = 2;
constexpr int chunks = 2;  // of a message
enum At : std::uint8_t { offer, answer, take, took, copy, tell, empty, whole, close, quiet, give_up, over };
enum Content : std::uint8_t { nobodys, right, wrong };
enum Error : std::uint8_t { none, copied_by_both, written_after_the_end, received_wrong };

struct Rank {
  std::uint8_t at, message, chunk, front, back;  // the last two as it has seen them
};

class LentCopy {
 public:
  struct State {
    Rank sender, receiver;
    std::uint8_t offered, answered, emptied;      // numbers of messages, shared
    std::uint8_t front, back, written, given_up;  // shared
    std::uint8_t copies_to, has_left;             // of the sender: the message whose receive it writes to, or 0
    std::array<std::uint8_t, messages * chunks> content;
    std::uint8_t is_overwritten, error;
  };

  LentCopy(int, int broken) : broken_(static_cast<Broken>(broken)) {}

  State first() const {
    State state{};
    state.sender.message = state.receiver.message = 1;
    return state;
  }
  bool is_over(const State& state) const { return state.sender.at == over && state.receiver.at == over; }
  const char* violation(const State& state) const {
    if (state.error == copied_by_both) return "a chunk is copied by both";
    if (state.error == written_after_the_end) return "the sender writes to a tensor whose receive has ended";
    return state.error == received_wrong ? "a message is received of which not all is right" : nullptr;
  }

  template <class Emit>
  void steps(const State& before, const Emit& emit) const {
    send(before, emit);
    receive(before, emit);
  }

 private:
  static std::uint8_t& content_of(State& state, int message, int chunk) {
    return state.content[static_cast<std::size_t>((message - 1) * chunks + chunk)];
  }

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
    me.at = copy;
    if (is_sender && broken_ == told_before_written) ++state.written;
    const Rank& other = is_sender ? state.receiver : state.sender;
    if (other.at == copy && other.chunk == me.chunk && other.message == me.message) state.error = copied_by_both;
    emit(is_sender ? 0 : 1, "takes a chunk", state);
    return true;
  }

  // Whether what the sender writes is not the tensor of a receive that goes on.
  static bool has_ended(const State& state) {
    return state.receiver.message != state.copies_to || state.receiver.at == over;
  }

  template <class Emit>
  void send(const State& before, const Emit& emit) const {
    if (before.sender.at == over) return;
    if (before.has_left == 0 && before.sender.at != give_up) leave(before, emit);
    State state = before;
    Rank& me = state.sender;
    switch (me.at) {
      case offer:
        if (before.has_left != 0) return end(before, emit);
        state.offered = me.message;
        me.at = answer;
        return emit(0, "offers a message", state);
      case answer:
        if (before.has_left != 0) return end(before, emit);
        if (before.copies_to == 0) {
          if (broken_ == answer_not_numbered ? before.answered == 0 : before.answered != me.message) return;
          state.copies_to = before.answered;
        }
        me.at = take;
        return emit(0, "sees that it was accepted", state);
      case take:
        if (before.has_left != 0) return end(before, emit);
        if (take_chunk(before, true, emit)) return;
        if (before.emptied < me.message && before.receiver.at != over) return;
        state.copies_to = 0;
        return go_on(state, emit);
      case took:
        take_chunk(before, true, emit);
        return;
      case copy:
        if (has_ended(before)) state.error = written_after_the_end;
        content_of(state, me.message, me.chunk) = me.message == before.copies_to ? right : wrong;
        me.at = broken_ == told_before_written ? take : tell;
        return emit(0, "has written a chunk", state);
      case tell:
        ++state.written;
        me.at = take;
        return emit(0, "says that it has written a chunk", state);
      case give_up:
        state.given_up = me.message;
        state.is_overwritten = me.message;
        if (broken_ == gone_on_with) return go_on(state, emit);
        me.at = over;
        return emit(0, "says that it gives up, and its caller writes to its tensor", state);
      default:
        return;
    }
  }

  // It leaves or is interrupted; what it copies just then it copies to the end.
  template <class Emit>
  void leave(const State& before, const Emit& emit) const {
    State state = before;
    state.has_left = 1;
    if (broken_ != gone_on_with) emit(0, "leaves", state, true);
    if (before.sender.at != take && before.sender.at != answer) return;
    state = before;
    state.sender.at = give_up;
    if (broken_ == overwritten_before_said) state.is_overwritten = before.sender.message;
    emit(0, "is interrupted", state, true);
  }

  template <class Emit>
  void end(const State& before, const Emit& emit) const {
    State state = before;
    state.sender.at = give_up;
    emit(0, "goes on leaving", state);
  }

  template <class Emit>
  void go_on(State state, const Emit& emit) const {
    Rank& me = state.sender;
    me.at = me.message == messages || state.receiver.at == over ? over : offer;
    if (me.at == offer) ++me.message;
    emit(0, "is done with a message", state);
  }

  template <class Emit>
  void receive(const State& before, const Emit& emit) const {
    State state = before;
    Rank& me = state.receiver;
    const bool is_quiet = before.written >= chunks - before.back;
    const bool is_gone = before.given_up != 0 || before.has_left != 0;
    switch (me.at) {
      case offer:
        if (before.offered != me.message) {
          if (!is_gone) return;
          me.at = over;
          return emit(1, "sees that its sender has gone", state);
        }
        state.front = state.written = 0;
        state.back = chunks;
        state.answered = me.message;
        me.at = take;
        return emit(1, "accepts a message", state);
      case take:
        be_interrupted(before, emit);
        if (take_chunk(before, false, emit)) return;
        me.back = before.back;
        me.at = empty;
        return emit(1, "sees that no chunk is left", state);
      case empty:
        be_interrupted(before, emit);
        if (before.written >= chunks - me.back || broken_ == ended_when_all_are_taken) {
          me.at = whole;
          return emit(1, "sees that all are written", state);
        }
        if (before.front < before.back || is_quiet) {
          me.at = take;
          return emit(1, "goes on", state);
        }
        if (!is_gone) return;
        me.at = close;
        return emit(1, "sees that its sender has gone", state);
      case whole:
        if (before.given_up != me.message || broken_ == giving_up_not_asked_for) return receive_all(state, emit);
        me.at = close;
        return emit(1, "sees that its sender has given up", state);
      case took:
        take_chunk(before, false, emit);
        return;
      case copy:
        content_of(state, me.message, me.chunk) = before.is_overwritten == me.message ? wrong : right;
        me.at = take;
        return emit(1, "has read a chunk", state);
      case close:
        state.front = before.back;
        me.at = quiet;
        return emit(1, "closes", state);
      case quiet:
        if (!is_quiet && broken_ != not_waited_for_quiet && !(broken_ == left_is_quiet && before.has_left != 0)) return;
        me.at = over;
        return emit(1, "raises, and its caller uses its tensor", state);
      default:
        return;
    }
  }

  template <class Emit>
  void be_interrupted(State state, const Emit& emit) const {
    state.receiver.at = broken_ == not_closed ? quiet : close;
    emit(1, "is interrupted", state, true);
  }

  template <class Emit>
  void receive_all(State& state, const Emit& emit) const {
    Rank& me = state.receiver;
    const auto begin = state.content.begin() + (me.message - 1) * chunks;
    if (!std::all_of(begin, begin + chunks, [](auto content) { return content == right; }))
      state.error = received_wrong;
    state.emptied = me.message;
    me.at = me.message == messages ? over : offer;
    if (me.at == offer) ++me.message;
    emit(1, "has received a message", state);
  }

  Broken broken_;
};

Outcome run(int ranks, int broken) { return explore(LentCopy(ranks, broken)); }

}  // namespace

std::vector<Case> lent_copy_cases() {
  return cases_of("lent_copy", {2},
                  {{"a receive ends when all chunks are taken", 2},
                   {"a receive that is withdrawn lets the sender take chunks", 2},
                   {"a receive that is withdrawn does not wait for the chunk being written", 2},
                   {"a chunk is told written before it is", 2},
                   {"a chunk is taken in two steps", 2},
                   {"a receive does not ask whether its sender has given up", 2},
                   {"a sender that gives up lets its caller write before it says so", 2},
                   {"a sender that has left is taken for one that writes nothing", 2},
                   {"a sender that has given up goes on with the copy it had", 2},
                   {"an answer is taken for one to another message", 2}},
                  &run);
}

}  // namespace shim::model
