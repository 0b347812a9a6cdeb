// Where the pieces of messages between two ranks lie.
//
// Each slot of a channel has room for a piece that is too large for the slot itself, once the sender has reserved that.
// What a rank has read lies in its own caches, and it can write there at once; where it has written, it must first take
// every line from the other rank's. So a rank that answers a piece writes where it has read that: while the piece is
// not emptied and the rank's own slot of the same index is free, both slots' rooms are this rank's, and it may exchange
// them. The one who fills a slot says in it which room it has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "group/group.hpp"

namespace shim {

// Of the two channels between this rank and `peer`, which may be the rank itself. Of one thread at a time. Slots are
// numbered from 0.
class ChannelRooms {
 public:
  ChannelRooms(const Group& group, int peer) : group_(group), peer_(peer) {}

  // Whether there is memory for the channel to `peer`, which is reserved once. Before to_fill() for what needs room.
  bool reserve() { return is_reserved_ = is_reserved_ || group_.reserve_rooms(peer_); }
  // What `peer` has exchanged, as read after how many slots of the channel to it are empty.
  void see_exchanged(std::uint32_t by_peer) { by_peer_ = by_peer; }
  // Where a piece of so many bytes goes in slot `number` of the channel to `peer`, which is free.
  std::byte* to_fill(std::uint64_t number, std::size_t bytes);
  // Where it lies in slot `number` of the channel from `peer`, which is filled.
  const std::byte* to_read(std::uint64_t number, std::size_t bytes) const;
  // Whether this rank has not filled the room of its own slot of that index since it exchanged it, or ever: pieces have
  // come in slot `number`, and none that needs room has gone back.
  bool is_one_way(std::uint64_t number) const;
  // After slot `number` of the channel from `peer` has been read, if its room was used. Of the channel to it, `filled`
  // slots have been filled so far, and of these `emptied` are known to be empty again.
  void exchange(std::uint64_t number, std::uint64_t filled, std::uint64_t emptied);

 private:
  std::byte* room(int from, int to, std::uint64_t number) const { return group_.channel_room(from, to, number); }

  const Group& group_;
  int peer_;
  bool is_reserved_ = false;
  // A bit for each slot: whether the rank has exchanged it an odd number of times.
  std::uint32_t by_me_ = 0;
  std::uint32_t by_peer_ = 0;
  std::uint32_t filled_since_ = 0;  // whether this rank has filled it since; if not, the peer has not read it either
};

}  // namespace shim
