// The slots of the channels: how pieces of messages get into them and out of them.
#include "collectives/exchange.hpp"
#include "messages/point_to_point.hpp"
#include "platform/fault_points.hpp"

namespace shim {

// What `peer` has emptied. Its line is fetched only when there may be no room.
void PointToPoint::see_emptied(int peer) {
  const auto i = static_cast<std::size_t>(peer);
  if (filled_[i] - seen_read_[i] >= channel_slots) look_what_is_emptied(peer);
}

void PointToPoint::look_what_is_emptied(int peer) {
  const auto i = static_cast<std::size_t>(peer);
  const Channel& channel = group_.channel(group_.rank(), peer);
  seen_read_[i] = channel.read.load();
  rooms_[i].see_exchanged(channel.exchanged.load());
}

SlotContent PointToPoint::content_for(Transfer& transfer) {
  if (transfer.is_refused) return SlotContent::refusal;
  return offer(transfer) ? SlotContent::offer : SlotContent::piece;
}

void PointToPoint::fill_slot(int peer, Transfer& transfer) {
  const auto i = static_cast<std::size_t>(peer);
  ChannelSlot& slot = group_.channel_slot(group_.rank(), peer, filled_[i]);
  slot.message = transfer.number;
  slot.bytes = transfer.buffer.bytes();
  slot.offset = transfer.moved;
  slot.set_tag(transfer.tag);
  slot.dtype = transfer.dtype;
  slot.content = content_for(transfer);
  if (slot.content == SlotContent::refusal) transfer.moved = transfer.buffer.bytes();
  if (slot.content == SlotContent::piece) {
    const Part whole{transfer.buffer.data(), transfer.buffer.bytes()};
    const Part piece = piece_of(whole, transfer.moved, group_.layout().channel_payload_bytes());
    stores_[i].copy(rooms_[i].to_fill(filled_[i], piece.bytes), piece.data, piece.bytes);
    transfer.moved += piece.bytes;
  }
  fault_point("in_send");
  slot.number.exchange(++filled_[i]);
  group_.ring_bell(peer);
  pieces_moved_.fetch_add(1);
}

void PointToPoint::take_payload(int peer, const ChannelSlot& slot) {
  const auto i = static_cast<std::size_t>(peer);
  Incoming& incoming = incoming_[i];
  if (incoming.dropped || slot.content == SlotContent::refusal) return;
  Part whole{};
  if (incoming.target != nullptr)
    whole = {incoming.target->buffer.data(), incoming.target->buffer.bytes()};
  else
    whole = {incoming.aside.back().bytes.data(), incoming.aside.back().bytes.size()};
  const Part piece = piece_of(whole, slot.offset, group_.layout().channel_payload_bytes());
  const OutputCopy copy_out(2 * whole.bytes, group_.thresholds());
  const std::byte* room = rooms_[i].to_read(read_[i], piece.bytes);
  copy_out(piece.data, room, piece.bytes);
  if (incoming.target != nullptr) incoming.target->moved += piece.bytes;
  if (piece.bytes <= sizeof(slot.small)) return;
  if (rooms_[i].is_one_way(read_[i])) return claim_read(group_, room, piece.bytes);
  // What is exchanged is one way from then on, until it is answered: for what may then be claimed, it is worth a look.
  if (piece.bytes >= group_.thresholds().claim)
    look_what_is_emptied(peer);
  else
    see_emptied(peer);  // which an answer would have to know anyway
  rooms_[i].exchange(read_[i], filled_[i], seen_read_[i]);
}

void PointToPoint::empty_slot(int peer) {
  group_.channel(peer, group_.rank()).read.exchange(++read_[static_cast<std::size_t>(peer)]);
  group_.ring_bell(peer);
  pieces_moved_.fetch_add(1);
}

}  // namespace shim
