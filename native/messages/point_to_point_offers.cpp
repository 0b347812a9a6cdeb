// Long messages of tensors in shared memory, copied from tensor to tensor.
#include "collectives/direct.hpp"
#include "group/loans.hpp"
#include "messages/point_to_point.hpp"

namespace shim {

// Whether it is.
bool PointToPoint::offer(Transfer& transfer) {
  const std::size_t bytes = transfer.buffer.bytes();
  const bool fits = bytes <= channel_slots * group_.layout().channel_payload_bytes();  // and its send ends at once
  if (fits || transfer.moved > 0 || transfer.was_declined || transfer.peer == group_.rank()) return false;
  if (!outgoing_[static_cast<std::size_t>(transfer.peer)].may_lend) return false;
  const Place place = lend(transfer.buffer);
  if (place.allocation == 0) return false;
  group_.channel(group_.rank(), transfer.peer).source = place;
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

// What `peer` says is there; null where that cannot be mapped.
std::shared_ptr<std::byte> PointToPoint::mapped(int peer, const Place& place, std::size_t bytes) {
  if (place.allocation == 0 || place.bytes != bytes) return nullptr;
  try {
    return group_.message_loans().map(peer, place);
  } catch (const std::bad_alloc&) {  // as above
    return nullptr;
  }
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
      if (answer == OfferAnswer::never) outgoing.may_lend = false;
      return true;
    }
    const std::size_t bytes = transfer.buffer.bytes();
    outgoing.copy.emplace(channel.copy, transfer.buffer.data(), mapped(peer, channel.destination, bytes), bytes,
                          streams(bytes));
  }
  const LentCopy::Step step = outgoing.copy->write_next();
  // What the receiver has taken counts as well: it begins the group's timeout again.
  const std::uint64_t taken = outgoing.copy->bytes_taken();
  if (transfer.moved.exchange(taken) != taken) pieces_moved_.fetch_add(1);
  if (step == LentCopy::Step::moved) {
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
    const OfferAnswer answer = answer_to(peer);
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
  const LentCopy::Step step = incoming.copy->read_next(slot.message);
  incoming.target->moved = incoming.copy->bytes_taken();
  if (step == LentCopy::Step::moved) pieces_moved_.fetch_add(1);
  if (step != LentCopy::Step::done) return step == LentCopy::Step::moved;
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
OfferAnswer PointToPoint::answer_to(int peer) {
  Incoming& incoming = incoming_[static_cast<std::size_t>(peer)];
  Transfer* target = incoming.target;
  if (target == nullptr || incoming.dropped || target->buffer.goes_through_copy()) return OfferAnswer::declined;
  const std::size_t bytes = target->buffer.bytes();
  Channel& channel = group_.channel(peer, group_.rank());
  std::shared_ptr<std::byte> source = mapped(peer, channel.source, bytes);
  if (source == nullptr) return group_.peers().process_to_read(peer) == 0 ? OfferAnswer::never : OfferAnswer::declined;
  channel.destination = lend(target->buffer);
  incoming.copy.emplace(channel.copy, target->buffer.data(), std::move(source), bytes, streams(bytes));
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
    if (!incoming.copy->end([this, peer] { return group_.peers().process_has_ended(peer); }))
      SharedAllocation::give_up(group_.channel(peer, group_.rank()).destination.allocation);
    else if (group_.is_usable())
      leave_offer(peer);
  }
}

}  // namespace shim
