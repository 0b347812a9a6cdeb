#include "messages/channel_rooms.hpp"

namespace shim {
namespace {

std::uint32_t bit_of(std::uint64_t number) { return std::uint32_t{1} << number % channel_slots; }

}  // namespace

std::byte* ChannelRooms::to_fill(std::uint64_t number, std::size_t bytes) {
  ChannelSlot& slot = group_.channel_slot(group_.rank(), peer_, number);
  if (bytes <= sizeof(slot.small)) return slot.small;
  filled_since_ |= bit_of(number);
  slot.has_others_room = ((by_me_ ^ by_peer_) & bit_of(number)) != 0;
  return slot.has_others_room ? room(peer_, group_.rank(), number) : room(group_.rank(), peer_, number);
}

const std::byte* ChannelRooms::to_read(std::uint64_t number, std::size_t bytes) const {
  const ChannelSlot& slot = group_.channel_slot(peer_, group_.rank(), number);
  if (bytes <= sizeof(slot.small)) return slot.small;
  return slot.has_others_room ? room(group_.rank(), peer_, number) : room(peer_, group_.rank(), number);
}

bool ChannelRooms::is_one_way(std::uint64_t number) const { return (filled_since_ & bit_of(number)) == 0; }

void ChannelRooms::exchange(std::uint64_t number, std::uint64_t filled, std::uint64_t emptied) {
  const bool is_free = (number - emptied) % channel_slots >= filled - emptied;
  if (!is_free || is_one_way(number) || peer_ == group_.rank()) return;
  filled_since_ &= ~bit_of(number);
  by_me_ ^= bit_of(number);
  group_.channel(peer_, group_.rank()).exchanged.store(by_me_);
}

}  // namespace shim
