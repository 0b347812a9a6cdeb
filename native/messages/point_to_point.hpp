// send and receive: messages between two ranks of a group, beside the order of the collectives.
//
// Each ordered pair of ranks has a channel, a small ring of slots. A message is a run of slots; small ones lie in the
// channel until they are received, so a send of one ends at once, while a long one ends when its receiver has taken
// most of it. Messages of one pair arrive in order; a receive takes the first one with its tag. When the first message
// in a channel has another tag, it is put aside into the receiver's own memory.
//
// One that is longer than the channel is offered before it is sent, where its tensor is lent: a slot says so. Where a
// receive waits for it, and can map it, it is copied from tensor to tensor, and the receiver empties that slot when all
// is there. Else it declines, and the message goes through the channel.
#pragma once

#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "group/group.hpp"
#include "machine/slot_stores.hpp"
#include "messages/channel_rooms.hpp"
#include "messages/lent_copy.hpp"
#include "messages/transfer.hpp"

namespace shim {

// Thread-safe. Transfers move on when any thread calls advance(), which every waiting thread of the group does.
class PointToPoint final : public BackgroundWork {
 public:
  explicit PointToPoint(Group& group);

  // Of a prepared one.
  void post(Transfer& transfer);
  // Ends `transfer` before its time. One of which pieces were sent fails the group: its receiver waits for the rest.
  void withdraw(Transfer& transfer);
  bool advance() override;
  bool has_pending() const { return pending_.load() > 0; }
  std::uint64_t pieces_moved() const { return pieces_moved_.load(); }
  std::string describe_pending();
  // For tests, before anything moves: as after so many slots and messages of all channels.
  void begin_with(std::uint64_t number);
  // Of the slots of the channel to `peer`. For tests, while nothing moves.
  SlotTimes& slot_times(int peer) { return stores_[static_cast<std::size_t>(peer)].times(); }
  // Whether a transfer that has not ended depends on `rank` alone.
  bool needs(int rank);
  // Ends all transfers with `failure`.
  void fail_all(const Failure& failure);

 private:
  struct Said {  // of a message, by its sender
    std::int64_t tag;
    Dtype dtype;
    std::uint64_t bytes;
    bool is_refused;  // there was no memory for it
  };
  struct Aside {  // a message that came before its receive
    Said said;
    std::vector<std::byte> bytes;
  };
  struct Incoming {  // from one rank
    bool in_message = false;
    Transfer* target = nullptr;    // null while in_message: put aside, or its receive was withdrawn
    bool dropped = false;          // its payload is not wanted: it does not fit `target`, or that was withdrawn
    std::deque<Aside> aside;       // complete ones, and at the end the one in progress
    std::optional<LentCopy> copy;  // of the message, where it was accepted as offered
  };
  struct Outgoing {  // to one rank
    std::deque<Transfer*> queue;
    std::uint64_t begun = 0;       // messages
    bool may_lend = true;          // as far as is known, the receiver can map it
    std::optional<LentCopy> copy;  // of the first in the queue, once it was accepted
  };

  bool advance_send(int peer);
  bool advance_receive(int peer);
  bool begin_message(int peer, const ChannelSlot& slot);
  void end_message(int peer);
  std::vector<std::byte> room_for(const ChannelSlot& slot, int peer);
  bool take_from_aside(Transfer& transfer, int peer);
  bool fits(Transfer& transfer, int peer, const Said& said);
  void end(Transfer& transfer);

  // Of the slots, in point_to_point_slots.cpp.
  void see_emptied(int peer);
  void look_what_is_emptied(int peer);
  SlotContent content_for(Transfer& transfer);
  void fill_slot(int peer, Transfer& transfer);
  void take_payload(int peer, const ChannelSlot& slot);
  void empty_slot(int peer);

  // Of messages that are offered, in point_to_point_offers.cpp. Whether anything moved, as of the others.
  bool offer(Transfer& transfer);
  Place lend(const Buffer& buffer);
  std::shared_ptr<std::byte> mapped(int peer, const Place& place, std::size_t bytes);
  bool streams(std::size_t bytes) const { return 2 * bytes > group_.thresholds().stream; }
  bool advance_offered(int peer, Transfer& transfer);
  bool take_offered(int peer, const ChannelSlot& slot);
  OfferAnswer answer_to(int peer);
  void leave_offer(int peer);
  void give_up(Transfer& transfer);

  Group& group_;
  std::mutex mutex_;
  std::atomic<int> pending_{0};
  std::atomic<std::uint64_t> pieces_moved_{0};  // in or out
  std::vector<Outgoing> outgoing_;              // by rank
  std::list<Transfer*> posted_;                 // receives without a message yet, in order
  std::vector<Incoming> incoming_;              // by rank
  std::vector<SlotStores> stores_;              // by rank
  std::vector<ChannelRooms> rooms_;             // by rank
  std::vector<std::uint64_t> filled_;           // slots of the channel to each rank, so far
  std::vector<std::uint64_t> seen_read_;        // of these, how many that rank has emptied, as last seen
  std::vector<std::uint64_t> read_;             // slots of the channel from each rank, emptied so far
};

}  // namespace shim
