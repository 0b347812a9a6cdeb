// Messages from one rank to another: slots that are filled in turn and emptied in turn, a message in several of them.
// Mirrors native/messages/point_to_point.cpp, with two slots.
#include <array>

#include "model/cases.hpp"

namespace shim::model {
namespace {

enum Broken {
  nothing,
  numbered_before_written,
  filled_too_soon,
  emptied_before_read,
  read_without_number,  // whatever is in the slot
  turn_not_counted,     // a slot is told filled, not how often
};

constexpr int slots = 2;
constexpr int pieces = 5;  // of all messages together
enum At : std::uint8_t { waits, writing, numbering, reading, ended };

struct Slot {
  std::uint8_t number, content, is_whole;
};

class Channel {
 public:
  struct State {
    std::array<Slot, slots> slots_;
    std::uint8_t sender_at, receiver_at, sent, received, read, error;
  };

  Channel(int, int broken) : broken_(static_cast<Broken>(broken)) {}

  State first() const { return State{}; }
  bool is_over(const State& state) const { return state.received == pieces; }
  const char* violation(const State& state) const {
    return state.error != 0 ? "a piece is received that was not the next one sent" : nullptr;
  }

  template <class Emit>
  void steps(const State& before, const Emit& emit) const {
    send(before, emit);
    receive(before, emit);
  }

 private:
  template <class Emit>
  void send(const State& before, const Emit& emit) const {
    State state = before;
    Slot& slot = state.slots_[before.sent % slots];
    const auto piece = static_cast<std::uint8_t>(before.sent + 1);
    switch (before.sender_at) {
      case waits:
        if (before.sent == pieces) return;
        if (before.sent - before.read >= slots + (broken_ == filled_too_soon ? 1 : 0)) return;
        if (broken_ == numbered_before_written) slot.number = piece;
        slot.content = piece;
        slot.is_whole = 0;
        state.sender_at = writing;
        return emit(0, "begins to fill a slot", state);
      case writing:
        slot.is_whole = 1;
        state.sender_at = numbering;
        return emit(0, "has filled a slot", state);
      case numbering:
        slot.number = broken_ == turn_not_counted ? std::uint8_t{1} : piece;
        ++state.sent;
        state.sender_at = waits;
        return emit(0, "numbers it", state);
      default:
        return;
    }
  }

  template <class Emit>
  void receive(const State& before, const Emit& emit) const {
    State state = before;
    const Slot& slot = before.slots_[before.received % slots];
    const auto piece = static_cast<std::uint8_t>(before.received + 1);
    switch (before.receiver_at) {
      case waits: {
        if (before.received == pieces) return;
        const bool is_there = broken_ == turn_not_counted ? slot.number == 1 : slot.number == piece;
        if (!is_there && broken_ != read_without_number) return;
        if (slot.content != piece || slot.is_whole == 0) state.error = 1;
        state.receiver_at = reading;
        if (broken_ == emptied_before_read) ++state.read;
        return emit(1, "begins to read a slot", state);
      }
      case reading:
        if (slot.content != piece || slot.is_whole == 0) state.error = 1;
        ++state.received;
        if (broken_ != emptied_before_read) ++state.read;
        state.receiver_at = waits;
        return emit(1, "has read a slot", state);
      default:
        return;
    }
  }

  Broken broken_;
};

Outcome run(int ranks, int broken) { return explore(Channel(ranks, broken)); }

}  // namespace

std::vector<Case> channel_cases() {
  return cases_of("channel", {2},
                  {{"a slot is numbered before it is written", 2},
                   {"a slot is filled one turn too soon", 2},
                   {"a slot is told empty before it is read", 2},
                   {"a slot is read without its number", 2},
                   {"a slot's number does not count its turns", 2}},
                  &run);
}

}  // namespace shim::model
