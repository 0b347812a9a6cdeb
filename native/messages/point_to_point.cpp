#include "messages/point_to_point.hpp"

#include <algorithm>
#include <exception>
#include <string>

#include "collectives/exchange.hpp"
#include "group/descriptions.hpp"
#include "group/loans.hpp"
#include "messages/end_listener.hpp"
#include "platform/fault_points.hpp"

namespace shim {
namespace {

// In one go, so that a thread that was only polling soon comes back, and can say that it is going to be busy.
constexpr int most_pieces_at_once = 2 * channel_slots;
constexpr int pieces_of_chunk =
    channel_slots;  // as which a chunk of a message that is copied from tensor to tensor counts

// The same on both ranks.
Failure refusal(const std::string& sender, Dtype dtype, std::uint64_t bytes, std::int64_t tag) {
  return Failure(FailureKind::memory, "there is not enough memory on " + sender +
                                          " for the buffers of a message: it could not send " +
                                          elements_in(dtype, bytes) +
                                          (Transfer::is_of_engine(tag) ? "" : " with tag " + std::to_string(tag)) +
                                          "\nNothing was sent; the group can still be used.");
}

bool takes(const Transfer& receive, int peer, std::int64_t tag) {
  return (receive.peer == peer || receive.peer == Transfer::any_rank) && receive.tag == tag;
}

}  // namespace

PointToPoint::PointToPoint(Group& group)
    : group_(group),
      outgoing_(static_cast<std::size_t>(group.size())),
      incoming_(static_cast<std::size_t>(group.size())),
      stores_(static_cast<std::size_t>(group.size())),
      filled_(static_cast<std::size_t>(group.size())),
      seen_read_(static_cast<std::size_t>(group.size())),
      read_(static_cast<std::size_t>(group.size())) {
  for (int peer = 0; peer < group.size(); ++peer) rooms_.emplace_back(group, peer);
}

void PointToPoint::begin_with(std::uint64_t number) {
  for (auto* counters : {&filled_, &seen_read_, &read_}) std::fill(counters->begin(), counters->end(), number);
  for (int peer = 0; peer < group_.size(); ++peer) {
    group_.channel(peer, group_.rank()).read.store(number);
    outgoing_[static_cast<std::size_t>(peer)].begun = number;
  }
}

void PointToPoint::post(Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  group_.message_loans().drop_freed();
  pending_.fetch_add(1);
  if (transfer.is_send) {
    Outgoing& outgoing = outgoing_[static_cast<std::size_t>(transfer.peer)];
    const bool needs_room = transfer.buffer.bytes() > sizeof(ChannelSlot::small);
    transfer.is_refused = needs_room && !rooms_[static_cast<std::size_t>(transfer.peer)].reserve();
    transfer.number = ++outgoing.begun;
    outgoing.queue.push_back(&transfer);
    advance_send(transfer.peer);
    return;
  }
  const int first = transfer.peer == Transfer::any_rank ? 0 : transfer.peer;
  const int last = transfer.peer == Transfer::any_rank ? group_.size() - 1 : transfer.peer;
  for (int peer = first; peer <= last; ++peer)
    if (take_from_aside(transfer, peer)) return;
  posted_.push_back(&transfer);
  for (int peer = first; peer <= last && !transfer.ended; ++peer) advance_receive(peer);
}

void PointToPoint::withdraw(Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  if (transfer.ended) return;
  if (transfer.is_send && (transfer.moved > 0 || transfer.is_offered || transfer.was_declined))
    group_.record(Failure(FailureKind::engine, "a message was given up when a part of it had been sent"));
  give_up(transfer);
  posted_.remove(&transfer);
  for (Outgoing& outgoing : outgoing_) std::erase(outgoing.queue, &transfer);
  end(transfer);
}

bool PointToPoint::advance() {
  if (!has_pending()) return false;
  const std::lock_guard lock(mutex_);
  bool moved = false;
  for (int peer = 0; peer < group_.size(); ++peer) {
    moved = advance_send(peer) || moved;
    moved = advance_receive(peer) || moved;
  }
  return moved;
}

std::string PointToPoint::describe_pending() {
  const std::lock_guard lock(mutex_);
  for (const Outgoing& outgoing : outgoing_)
    if (!outgoing.queue.empty()) return outgoing.queue.front()->describe(group_);
  for (const Incoming& incoming : incoming_)
    if (incoming.target != nullptr) return incoming.target->describe(group_);
  return posted_.empty() ? "a message" : posted_.front()->describe(group_);
}

bool PointToPoint::needs(int rank) {
  const std::lock_guard lock(mutex_);
  const auto i = static_cast<std::size_t>(rank);
  return !outgoing_[i].queue.empty() || (incoming_[i].in_message && incoming_[i].target != nullptr) ||
         std::any_of(posted_.begin(), posted_.end(), [rank](const Transfer* receive) { return receive->peer == rank; });
}

void PointToPoint::fail_all(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  const auto fail = [&](Transfer* transfer) {
    give_up(*transfer);
    transfer->failure = failure;
    end(*transfer);
  };
  for (Outgoing& outgoing : outgoing_) {
    std::for_each(outgoing.queue.begin(), outgoing.queue.end(), fail);
    outgoing.queue.clear();
  }
  std::for_each(posted_.begin(), posted_.end(), fail);
  posted_.clear();
  for (const Incoming& incoming : incoming_)
    if (incoming.target != nullptr) fail(incoming.target);
}

bool PointToPoint::advance_send(int peer) {
  const auto i = static_cast<std::size_t>(peer);
  auto& queue = outgoing_[i].queue;
  int pieces = 0;
  // Where a message was given up in the middle, what comes after it must not be taken for the rest of it.
  while (!queue.empty() && pieces < most_pieces_at_once && group_.is_usable()) {
    Channel& channel = group_.channel(group_.rank(), peer);
    Transfer& transfer = *queue.front();
    if (transfer.is_offered) {
      if (!advance_offered(peer, transfer)) break;
      pieces += pieces_of_chunk;
      continue;
    }
    see_emptied(peer);
    if (filled_[i] - seen_read_[i] >= channel_slots) break;
    fill_slot(peer, transfer);
    ++pieces;
    if (transfer.is_offered || transfer.moved < transfer.buffer.bytes()) continue;
    if (transfer.is_refused)
      transfer.failure =
          refusal(rank_label(group_, group_.rank()), transfer.dtype, transfer.buffer.bytes(), transfer.tag);
    else if (transfer.buffer.bytes() > group_.layout().channel_payload_bytes() &&
             channel.refused.load() == transfer.number)
      transfer.failure = Failure(FailureKind::mismatch, rank_label(group_, peer) + " did not expect " +
                                                            elements_in(transfer.dtype, transfer.buffer.bytes()) +
                                                            " with tag " + std::to_string(transfer.tag));
    queue.pop_front();
    end(transfer);
  }
  return pieces > 0;
}

bool PointToPoint::advance_receive(int peer) {
  const auto i = static_cast<std::size_t>(peer);
  Incoming& incoming = incoming_[i];
  int pieces = 0;
  while (pieces < most_pieces_at_once) {
    ChannelSlot& slot = group_.channel_slot(peer, group_.rank(), read_[i]);
    if (slot.number.load() != read_[i] + 1) break;
    if (!incoming.in_message && !begin_message(peer, slot)) break;
    if (slot.content == SlotContent::offer) {
      if (!take_offered(peer, slot)) break;
      pieces += pieces_of_chunk;
      continue;
    }
    ++pieces;
    take_payload(peer, slot);
    fault_point("in_receive");
    const bool is_last =
        slot.content == SlotContent::refusal || slot.offset + group_.layout().channel_payload_bytes() >= slot.bytes;
    empty_slot(peer);
    if (is_last) end_message(peer);
  }
  return pieces > 0;
}

void PointToPoint::end_message(int peer) {
  Incoming& incoming = incoming_[static_cast<std::size_t>(peer)];
  incoming.in_message = false;
  if (Transfer* target = std::exchange(incoming.target, nullptr)) {
    if (!incoming.dropped) target->buffer.store();
    end(*target);
  } else if (!incoming.dropped) {  // put aside: perhaps its receive was posted meanwhile
    const std::int64_t tag = incoming.aside.back().said.tag;
    const auto receive =
        std::find_if(posted_.begin(), posted_.end(), [&](const Transfer* r) { return takes(*r, peer, tag); });
    if (receive != posted_.end() && take_from_aside(**receive, peer)) posted_.erase(receive);
  }
}

// The message cannot be taken and cannot be left, as others may be behind it: the group fails.
std::vector<std::byte> PointToPoint::room_for(const ChannelSlot& slot, int peer) {
  try {
    return std::vector<std::byte>(slot.bytes);
  } catch (const std::exception&) {
    group_.fail(Failure(FailureKind::engine,
                        "there is not enough memory to put aside " + elements_in(slot.dtype, slot.bytes) + " from " +
                            rank_label(group_, peer) + ", for whose tag " + std::to_string(slot.full_tag()) +
                            " nothing waits\nThe group can no longer be used."));
  }
}

// Decides where a new message goes. False when it stays in the channel, because nobody waits for anything of this rank.
bool PointToPoint::begin_message(int peer, const ChannelSlot& slot) {
  Incoming& incoming = incoming_[static_cast<std::size_t>(peer)];
  const auto wanted = [&](const Transfer* receive) {
    return receive->peer == peer || receive->peer == Transfer::any_rank;
  };
  if (std::none_of(posted_.begin(), posted_.end(), wanted)) return false;
  const auto receive =
      std::find_if(posted_.begin(), posted_.end(), [&](const Transfer* r) { return takes(*r, peer, slot.full_tag()); });
  const Said said{slot.full_tag(), slot.dtype, slot.bytes, slot.content == SlotContent::refusal};
  if (receive == posted_.end())
    incoming.aside.push_back({said, said.is_refused ? std::vector<std::byte>() : room_for(slot, peer)});
  incoming.in_message = true;
  incoming.dropped = false;
  if (receive == posted_.end()) return true;
  Transfer& transfer = **receive;
  posted_.erase(receive);
  incoming.target = &transfer;
  // It ends with the message, whose sender waits for it to be taken.
  if (!fits(transfer, peer, said)) {
    incoming.dropped = true;
    group_.channel(peer, group_.rank()).refused.store(slot.message);
  }
  return true;
}

// Gives `transfer` the first complete message of `peer` with its tag that was put aside; false when there is none.
bool PointToPoint::take_from_aside(Transfer& transfer, int peer) {
  Incoming& incoming = incoming_[static_cast<std::size_t>(peer)];
  const bool last_is_open = incoming.in_message && incoming.target == nullptr && !incoming.dropped;
  const auto end_of_complete = incoming.aside.end() - (last_is_open ? 1 : 0);
  const auto found = std::find_if(incoming.aside.begin(), end_of_complete,
                                  [&](const Aside& message) { return message.said.tag == transfer.tag; });
  if (found == end_of_complete) return false;
  if (fits(transfer, peer, found->said)) {
    copy_bytes(transfer.buffer.data(), found->bytes.data(), found->bytes.size());
    transfer.buffer.store();
  }
  incoming.aside.erase(found);
  end(transfer);
  return true;
}

bool PointToPoint::fits(Transfer& transfer, int peer, const Said& said) {
  transfer.source = peer;
  if (said.is_refused) {
    transfer.failure = refusal(rank_label(group_, peer), said.dtype, said.bytes, said.tag);
    return false;
  }
  if (said.dtype == transfer.dtype && said.bytes == transfer.buffer.bytes()) return true;
  transfer.failure = Failure(FailureKind::mismatch,
                             rank_label(group_, peer) + " sent " + elements_in(said.dtype, said.bytes) +
                                 " where this rank receives " + elements_in(transfer.dtype, transfer.buffer.bytes()) +
                                 "\nThe message was dropped; the group can still be used.");
  return false;
}

void PointToPoint::end(Transfer& transfer) {
  pending_.fetch_sub(1);
  transfer.ended.store(true);
  tell_end_listener();
}

}  // namespace shim
