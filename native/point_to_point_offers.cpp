// Long messages, which both ranks copy from tensor to tensor where they can.
#include <cerrno>
#include <cstring>

#include "direct.hpp"
#include "loans.hpp"
#include "point_to_point.hpp"

namespace shim {

// Whether it is, in `slot`.
bool PointToPoint::offer(Transfer& transfer, ChannelSlot& slot) {
  const std::size_t bytes = transfer.buffer.bytes();
  const bool fits = bytes <= channel_slots * group_.layout().channel_payload_bytes();  // and its send ends at once
  if (fits || transfer.moved > 0 || transfer.was_declined || transfer.peer == group_.rank()) return false;
  const Outgoing& outgoing = outgoing_[static_cast<std::size_t>(transfer.peer)];
  const Place place = outgoing.may_lend ? lend(transfer.buffer) : Place{};
  const bool may_cross = outgoing.may_offer && group_.thresholds().crosses(bytes);
  if (place.allocation == 0 && !may_cross) return false;
  group_.channel(group_.rank(), transfer.peer).source = place;
  const auto address = reinterpret_cast<std::uintptr_t>(transfer.buffer.data());
  static_assert(sizeof(address) <= sizeof(slot.small));
  std::memcpy(slot.small, &address, sizeof(address));
  transfer.is_offered = true;
  return true;
}

// Where it lies in what this rank lends; nowhere if it is not in shared memory.
Place PointToPoint::lend(const Buffer& buffer) {
  Place place{};
  if (!is_worth_lending(group_, buffer.bytes())) return place;
  Loans& loans = group_.message_loans();
  loans.begin();
  try {
    loans.lend(buffer.data(), buffer.bytes(), place);
  } catch (const std::bad_alloc&) {
    return {};  // there are ways that need none
  }
  return place;
}

// What `peer` says is there, and at `address` of its own memory.
RemoteTensor PointToPoint::tensor_of(int peer, const Place& place, std::uint64_t address, std::size_t bytes) {
  std::shared_ptr<std::byte> mapped;
  try {
    if (place.allocation != 0 && place.bytes == bytes) mapped = group_.message_loans().map(peer, place);
  } catch (const std::bad_alloc&) {  // as above
  }
  if (mapped != nullptr) return {std::move(mapped), 2 * bytes > group_.thresholds().stream};
  return {group_.process_to_read(peer), address};
}

// The first of those to `peer`.
bool PointToPoint::advance_offered(int peer, Transfer& transfer) {
  const auto i = static_cast<std::size_t>(peer);
  Outgoing& outgoing = outgoing_[i];
  Channel& channel = group_.channel(group_.rank(), peer);
  if (!outgoing.copy) {
    if (channel.answered.load() != transfer.number) return false;
    const OfferAnswer answer = channel.answer.load();
    if (answer != OfferAnswer::accepted) {
      transfer.is_offered = false;
      transfer.was_declined = true;
      if (answer == OfferAnswer::never) outgoing.may_offer = false;
      if (answer == OfferAnswer::never && channel.source.allocation != 0) outgoing.may_lend = false;
      return true;
    }
    const std::size_t bytes = transfer.buffer.bytes();
    const RemoteTensor target = tensor_of(peer, channel.destination_place, channel.destination.load(), bytes);
    outgoing.copy.emplace(channel.copy, transfer.buffer.data(), target, bytes);
  }
  const CrossCopy::Step step = outgoing.copy->write_next();
  // What the receiver has taken counts as well: it begins the group's timeout again.
  const std::uint64_t taken = outgoing.copy->bytes_taken();
  if (transfer.moved.exchange(taken) != taken) pieces_moved_.fetch_add(1);
  if (step == CrossCopy::Step::moved) {
    group_.ring_bell(peer);  // it may have come to the end, and waits for this chunk
    return true;
  }
  if (channel.read.load() != filled_[i]) return false;
  outgoing.copy.reset();
  outgoing.queue.pop_front();
  transfer.is_offered = false;
  end(transfer);
  return true;
}

// Of a message that has begun.
bool PointToPoint::take_offered(int peer, const ChannelSlot& slot) {
  Incoming& incoming = incoming_[static_cast<std::size_t>(peer)];
  if (!incoming.copy) {
    Channel& channel = group_.channel(peer, group_.rank());
    const OfferAnswer answer = answer_to(peer, slot);
    channel.answer.store(answer);
    channel.answered.store(slot.message);
    if (answer != OfferAnswer::accepted) empty_slot(peer);  // rings
    group_.ring_bell(peer);
    return true;
  }
  if (incoming.target == nullptr) {  // withdrawn
    if (!incoming.copy->is_quiet()) return false;
    leave_offer(peer);
    return true;
  }
  const CrossCopy::Step step = incoming.copy->read_next(slot.message);
  const int cause = errno;
  incoming.target->moved = incoming.copy->bytes_taken();
  if (step == CrossCopy::Step::moved) pieces_moved_.fetch_add(1);
  if (step == CrossCopy::Step::failed && !group_.is_gone(peer))
    group_.fail(Failure(FailureKind::engine, "the system cannot copy the tensor that rank " + std::to_string(peer) +
                                                 " sends to that of this rank: " + std::strerror(cause) +
                                                 "\nThe group can no longer be used."));
  if (step != CrossCopy::Step::done) return step == CrossCopy::Step::moved;
  leave_offer(peer);
  return true;
}

// Its sender may go on.
void PointToPoint::leave_offer(int peer) {
  incoming_[static_cast<std::size_t>(peer)].copy.reset();
  empty_slot(peer);
  end_message(peer);
}

// Where it is accepted, both ranks may copy from now on.
OfferAnswer PointToPoint::answer_to(int peer, const ChannelSlot& slot) {
  Incoming& incoming = incoming_[static_cast<std::size_t>(peer)];
  Transfer* target = incoming.target;
  if (target == nullptr || incoming.dropped || target->buffer.goes_through_copy()) return OfferAnswer::declined;
  const std::size_t bytes = target->buffer.bytes();
  std::uint64_t address = 0;
  std::memcpy(&address, slot.small, sizeof(address));
  Channel& channel = group_.channel(peer, group_.rank());
  const RemoteTensor source = tensor_of(peer, channel.source, address, bytes);
  if (!source.is_in_reach()) return OfferAnswer::never;
  if (!source.ends_can_be_read(bytes)) return OfferAnswer::declined;
  std::byte* const data = target->buffer.data();
  channel.destination_place = lend(target->buffer);
  channel.destination.store(reinterpret_cast<std::uintptr_t>(data));
  incoming.copy.emplace(channel.copy, data, source, bytes);
  incoming.copy->open();
  return OfferAnswer::accepted;
}

// Before the caller can use the tensor again.
void PointToPoint::give_up(Transfer& transfer) {
  if (transfer.is_send) {
    Outgoing& outgoing = outgoing_[static_cast<std::size_t>(transfer.peer)];
    if (!outgoing.queue.empty() && outgoing.queue.front() == &transfer) outgoing.copy.reset();
    if (transfer.is_offered) group_.channel(group_.rank(), transfer.peer).copy.given_up.exchange(transfer.number);
    return;
  }
  for (int peer = 0; peer < group_.size(); ++peer) {
    Incoming& incoming = incoming_[static_cast<std::size_t>(peer)];
    if (incoming.target != &transfer) continue;
    incoming.target = nullptr;
    incoming.dropped = true;
    if (!incoming.copy) continue;
    transfer.is_exposed = !incoming.copy->end([this, peer] { return group_.process_has_ended(peer); });
    if (!transfer.is_exposed && group_.is_usable()) leave_offer(peer);
  }
}

}  // namespace shim
