// Messages both ways between two ranks, which exchange the rooms of their slots. Mirrors
// native/messages/channel_rooms.hpp and how native/messages/point_to_point.cpp calls it, with two slots;
// channel_model.cpp has the rest of a channel.
#include <array>

#include "model/cases.hpp"

namespace shim::model {
namespace {

enum Broken {
  nothing,
  own_slot_is_not_asked,  // for whether it is free
  told_after_emptied,     // that it has exchanged
  seen_before_emptied,    // what the other one has exchanged
  reader_takes_its_own,   // the room that would be its to fill
  always_reads_own_rooms,
  claimed_when_emptied,  // a room, after it was told that its slot is empty
};

constexpr int slots = 2;
constexpr int pieces = 5;  // each way
enum At : std::uint8_t { idle, looking, seeing, filling, numbering, reading, claiming, telling, emptying };

enum Error : std::uint8_t { none, other_piece, still_claimed };

struct Slot {
  std::uint8_t number, room;  // of its piece, from 1; which room that is in
};
struct Room {
  std::uint8_t sender, number, is_whole;
  std::uint8_t is_claimed;  // at this moment, by who has read it
};
struct Rank {
  std::uint8_t at, filled, seen, received;
  std::uint8_t by_me, by_peer, filled_since;  // a bit for each slot
  std::uint8_t told_exchanged, told_read;     // as the other rank sees them
};

class Rooms {
 public:
  struct State {
    std::array<Rank, 2> ranks;
    std::array<std::array<Slot, slots>, 2> channels;  // by sender
    std::array<std::array<Room, slots>, 2> rooms;     // by the sender behind whose slots they are
    std::uint8_t error;
  };

  Rooms(int, int broken) : broken_(static_cast<Broken>(broken)) {}

  State first() const { return State{}; }
  bool is_over(const State& state) const {
    return state.ranks[0].received == pieces && state.ranks[1].received == pieces;
  }
  const char* violation(const State& state) const {
    if (state.error == other_piece) return "a room is read that has another piece in it";
    return state.error == still_claimed ? "a room is filled while it is claimed" : nullptr;
  }

  template <class Emit>
  void steps(const State& before, const Emit& emit) const {
    for (int rank = 0; rank < 2; ++rank) {
      if (before.ranks[rank].at != idle) {
        go_on(before, rank, emit);
        continue;
      }
      begin_filling(before, rank, emit);
      begin_reading(before, rank, emit);
    }
  }

 private:
  static std::uint8_t bit_of(int number) { return static_cast<std::uint8_t>(1 << number % slots); }
  static std::uint8_t own_room(const Rank& me, int number) {
    return static_cast<std::uint8_t>(((me.by_me ^ me.by_peer) & bit_of(number)) != 0 ? 1 : 0);
  }

  template <class Emit>
  void begin_filling(const State& before, int rank, const Emit& emit) const {
    State state = before;
    Rank& me = state.ranks[rank];
    if (me.filled == pieces) return;
    if (me.filled - me.seen == slots) {
      if (broken_ == seen_before_emptied) me.by_peer = before.ranks[1 - rank].told_exchanged;
      me.at = looking;
      return emit(rank, "is going to look what is empty", state);
    }
    const std::uint8_t place = own_room(me, me.filled);
    state.channels[rank][me.filled % slots].room = place;
    Room& room = state.rooms[rank ^ place][me.filled % slots];
    if (room.is_claimed != 0) state.error = still_claimed;
    room = {static_cast<std::uint8_t>(rank), static_cast<std::uint8_t>(me.filled + 1), 0, 0};
    me.filled_since |= bit_of(me.filled);
    me.at = filling;
    emit(rank, "begins to fill a room", state);
  }

  template <class Emit>
  void begin_reading(const State& before, int rank, const Emit& emit) const {
    State state = before;
    Rank& me = state.ranks[rank];
    if (me.received == pieces || before.channels[1 - rank][me.received % slots].number != me.received + 1) return;
    check(state, rank);
    me.at = reading;
    emit(rank, "begins to read a room", state);
  }

  template <class Emit>
  void go_on(const State& before, int rank, const Emit& emit) const {
    State state = before;
    Rank& me = state.ranks[rank];
    const Rank& other = before.ranks[1 - rank];
    switch (me.at) {
      case looking:
        me.seen = other.told_read;
        me.at = broken_ == seen_before_emptied ? idle : seeing;
        return emit(rank, "looks what is empty", state);
      case seeing:
        me.by_peer = other.told_exchanged;
        me.at = idle;
        return emit(rank, "looks what is exchanged", state);
      case filling:
        state.rooms[rank ^ state.channels[rank][me.filled % slots].room][me.filled % slots].is_whole = 1;
        me.at = numbering;
        return emit(rank, "has filled a room", state);
      case numbering:
        ++me.filled;
        state.channels[rank][(me.filled - 1) % slots].number = me.filled;
        me.at = idle;
        return emit(rank, "numbers its slot", state);
      case reading:
        check(state, rank);
        if (is_one_way(me)) {
          room_read(state, rank).is_claimed = 1;
          if (broken_ == claimed_when_emptied) me.told_read = static_cast<std::uint8_t>(me.received + 1);
          me.at = claiming;
          return emit(rank, "has read a room, and begins to claim it", state);
        }
        exchange(me);
        me.at = telling;
        return emit(rank, "has read a room", state);
      case claiming:
        room_read(state, rank).is_claimed = 0;
        me.at = telling;
        return emit(rank, "has claimed a room", state);
      case telling:
        if (broken_ == told_after_emptied)
          me.told_read = static_cast<std::uint8_t>(me.received + 1);
        else
          me.told_exchanged = me.by_me;
        me.at = emptying;
        return emit(rank, "tells what it has exchanged", state);
      case emptying:
        me.told_read = ++me.received;
        me.told_exchanged = me.by_me;
        me.at = idle;
        return emit(rank, "tells that the slot is empty", state);
      default:
        return;
    }
  }

  static bool is_one_way(const Rank& me) { return (me.filled_since & bit_of(me.received)) == 0; }

  void exchange(Rank& me) const {
    const bool is_free = (me.received - me.seen + slots * pieces) % slots >= me.filled - me.seen;
    if ((!is_free && broken_ != own_slot_is_not_asked) || is_one_way(me)) return;
    me.filled_since &= static_cast<std::uint8_t>(~bit_of(me.received));
    me.by_me ^= bit_of(me.received);
  }

  void check(State& state, int rank) const {
    const Rank& me = state.ranks[rank];
    const Room& room = room_read(state, rank);
    if (room.sender != 1 - rank || room.number != me.received + 1 || room.is_whole == 0) state.error = other_piece;
  }

  Room& room_read(State& state, int rank) const {
    const Rank& me = state.ranks[rank];
    const int index = me.received % slots;
    std::uint8_t place = state.channels[1 - rank][index].room;
    if (broken_ == reader_takes_its_own) place = own_room(me, me.received);
    if (broken_ == always_reads_own_rooms) place = 0;
    return state.rooms[(1 - rank) ^ place][index];
  }

  Broken broken_;
};

Outcome run(int ranks, int broken) { return explore(Rooms(ranks, broken)); }

}  // namespace

std::vector<Case> rooms_cases() {
  return cases_of("rooms", {2},
                  {{"a rank exchanges a room although its own slot is not free", 2},
                   {"a slot is told empty before the exchange is told", 2},
                   {"what is exchanged is seen before what is empty", 2},
                   {"a reader takes the room that it would fill", 2},
                   {"a reader knows of no exchange", 2},
                   {"a room is claimed when it was told that its slot is empty", 2}},
                  &run);
}

}  // namespace shim::model
