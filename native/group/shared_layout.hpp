// What lies where in a group's shared memory, and who writes it.
//
// Every field has one writer, the rank it belongs to, or for ranks of other hosts the leader of this one; but for
// doorbells and what two ranks copy together. Readers poll. Room for data can change hands between two ranks: that of
// their rings (Group::ring_slot, ring_cell) and of the slots of their channels (channel_rooms.hpp). Nothing is a lock,
// so a rank that dies can hold none. Sizes read from here are checked before they are used to address memory.
//
// Lines and slots for small data are reserved when the group is made. Nobody touches the rest before who first writes
// there has reserved it: rings (ring_memory.hpp), rooms of channels (ChannelRooms), tables of Loans.
#pragma once

#include <atomic>
#include <cstdint>

#include "group/wait_hooks.hpp"
#include "machine/caches.hpp"
#include "machine/thresholds.hpp"
#include "platform/shared_text.hpp"
#include "tensors/dtypes.hpp"

namespace shim {

inline constexpr std::uint32_t protocol_version = 22;
inline constexpr std::size_t inline_bytes = 40;
// Their shared memory takes less than two gigabytes when all of it is reserved.
inline constexpr std::size_t max_ranks = 512;
inline constexpr std::size_t ring_slots = 4;
inline constexpr std::size_t small_slot_bytes = 4096;  // of a ring's slots that are there from the beginning
inline constexpr std::size_t channel_slots = 4;
inline constexpr std::size_t call_slots = 4;  // two would do for the calls, the others are what a rank did last
inline constexpr std::size_t refusal_bytes = 256;
inline constexpr std::size_t place_bytes = 192;  // of "train.py:12 in step"
inline constexpr std::size_t failure_bytes = 112;
inline constexpr std::size_t lent_allocations = 256;  // of each rank at a time, for one use; 8 KB

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

enum class OperationKind : std::uint8_t {
  none,
  broadcast,
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  reduce_scatter,
  all_to_all,
  barrier,
  refused,  // the rank's arguments were wrong: it raised, and takes part in order that the others need not wait
  count_,
};

// Of a ring there are two sets of slots: small ones, and large ones, which have to be reserved first.
enum class SlotSize : std::uint8_t { none, small, large };

// The beginning of the segment. Rank 0 writes it before the others get the memory; it does not change.
struct alignas(line_bytes) GroupHeader {
  Thresholds thresholds;
  std::uint64_t hash_seed;   // of the calls' fingerprints, drawn for this group
  std::uint32_t is_crowded;  // whether the ranks have less processors than they are
};

// A rank's arrival at operation `sequence`: one cache line that carries order, agreement and small data together.
struct alignas(line_bytes) ArrivalLine {
  std::atomic<std::uint64_t> sequence;  // written last; perhaps with `withdrawing` or `withdrawn`
  std::uint64_t fingerprint;            // of the call: see fingerprint_of() in arrival.cpp
  std::uint64_t bytes : 48;             // what this rank contributes; all of it is in `payload` if it fits
  std::uint64_t loan : 8;               // whether the others can read this rank's tensors where they are: see loans.hpp
  std::uint64_t varied : 4;             // parts differ in size, and ranks in tables: equal fingerprints prove nothing
  SlotSize filled : 4;                  // which of this rank's slots of the operation's first step has been filled
  std::byte payload[inline_bytes];
};
static_assert(offsetof(ArrivalLine, payload) + inline_bytes == 64, "an arrival is one cache line");

// A rank's call in full, beside its arrival. Counts are elements. Two tables of `size` counts follow it in memory,
// for what is sent to each rank and what is received from each; they are used when a count here is `in_table`. After
// them come `refusal_bytes` of text, which say why a call was refused, and a CallPlace. The shape of a barrier is the
// text of what it comes before.
struct CallDescriptor {
  static constexpr std::uint64_t in_table = ~std::uint64_t{0};

  OperationKind kind = OperationKind::none;
  Dtype dtype = Dtype::none;
  ReduceOp op = ReduceOp::sum;
  std::uint8_t dimensions = 0;
  std::int16_t root = -1, device = 0;  // DLPack's type of device, 0 for host memory
  std::uint64_t sends = 0;             // to each rank
  std::uint64_t receives = 0;          // from each rank
  std::uint64_t largest = 0;           // bytes of the largest part this rank sends or receives
  double factor = 1.0;                 // PREMUL_SUM
  std::int64_t shape[max_dimensions];  // the first `dimensions` of them
};

// Where in a rank's program a call was made, told only where the ranks disagree.
struct CallPlace {
  std::atomic<std::uint64_t> sequence;  // of the call; written last
  SharedText<place_bytes> text;
};

// How far a rank has come through the chunks of all operations so far; the counters only grow.
struct alignas(line_bytes) ProgressLine {
  std::atomic<std::uint64_t> ready;  // chunks this rank has put into its ring
  std::atomic<std::uint64_t> made;   // of these, how many it has completed with what it made of the others'
  std::atomic<std::uint64_t> done;   // chunks of all rings this rank no longer needs
  // The last operation for which it has tried to reserve its ring, and whether it has it; that is written first.
  std::atomic<std::uint64_t> tried_to_reserve;
  std::atomic<bool> has_ring;
};

// What a rank lends memory for: operations and messages go on in different threads, and have a table each.
enum class LentFor : std::uint8_t { operations, messages };

// Shared memory of a rank's own that it lends to the group, so that the others can map it.
struct LentAllocation {
  std::atomic<std::uint64_t> number;  // no two of a process have the same; 0 when it has been freed, or was never there
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> inode;  // of the file, by which it is known again
  std::atomic<std::int32_t> file;    // a descriptor of the lending process
};

// Where a tensor of a rank's, or a part of one, begins in what it lends.
struct Place {
  std::uint64_t allocation;  // the number of a lent one, or 0 where there is none
  std::uint64_t slot;        // which of its LentAllocations that is
  std::uint64_t offset;      // in the allocation
  std::uint64_t bytes;
};

// Of what two ranks copy together, from the sender's tensor to the receiver's: see lent_copy.hpp.
struct LentCopyState {
  std::atomic<std::uint64_t> untaken;   // by both: which chunks neither has taken
  std::atomic<std::uint64_t> written;   // by the sender: how many it has written, since the receiver put 0 there
  std::atomic<std::uint64_t> given_up;  // by the sender: number of the message whose tensor can no longer be read
};

// How far a rank has come with the operations in which the ranks read each other's tensors where they are.
struct alignas(line_bytes) DirectLine {
  std::atomic<std::uint64_t> tried;       // the last operation for which it has tried to map the others' tensors, and
  std::atomic<std::uint64_t> mapped;      // the last one for which it has mapped them all; written first
  std::atomic<std::uint64_t> agreed;      // the last one in which it has agreed with the others which way data goes
  std::atomic<std::uint64_t> finished;    // the last one in which it needs nothing more of the others' tensors
  std::atomic<std::uint64_t> taken_back;  // how many of its allocations it has ceased to lend
};

// A rank's side of the operations in which two ranks read each other's tensors through the kernel.
struct alignas(line_bytes) CrossLine {
  std::atomic<std::uint64_t> offered;   // the last one in which it has said where its tensor lies
  std::atomic<std::uint64_t> answered;  // the last one in which it has said whether it can read the other's
  std::atomic<std::uint64_t> accepted;  // the last one in which it can; written first
  std::atomic<std::uint64_t> address;   // of its tensor; written first
};

// Where a rank that found nothing to do sleeps.
struct alignas(line_bytes) Doorbell {
  std::atomic<std::uint32_t> rings;     // the futex word
  std::atomic<std::uint32_t> sleepers;  // threads of this rank that sleep on it
};

enum class RankState : std::uint32_t { active, left, failed };

// Whether a rank is still there. The state changes once; why it left or failed is written before it.
struct alignas(line_bytes) StatusLine {
  std::atomic<RankState> state;
  std::atomic<std::int32_t> cause;  // the group rank that was lost, or -1
  // The number of the processor it last arrived or waited on, and 1; 0 before.
  std::atomic<std::int32_t> processor;
  std::atomic<std::uint32_t> has_left;  // whether it has left, be it after it had failed
  char reason[failure_bytes];           // in one line, where no rank was lost; need not end with a zero
};
static_assert(sizeof(StatusLine) == line_bytes);

// A rank's process, and what it waits for when that takes long.
struct alignas(line_bytes) RankNote {
  std::atomic<std::int64_t> waits_since;  // steady nanoseconds, 0 while it does not; written last
  std::atomic<std::int32_t> process;      // its number, in
  std::atomic<std::uint64_t> processes;   // the pid namespace with this inode
  std::uint64_t identity;                 // a random number that lies in the process's memory
  std::uint64_t identity_at;              // at this address; both from the beginning on
  SharedText<64> address;                 // where the process answers inquiries
  std::atomic<std::uint64_t> operation;   // of the collective that it waits in; 0 where it waits for anything else
  std::atomic<std::uint64_t> meeting;     // where it waits to make a group, a number for that; else 0
  // A bit for each rank that is to come there, or to send or receive.
  std::atomic<std::uint64_t> awaits[max_ranks / 64];
  std::atomic<Held> held;
  SharedText<224> waits_for;
  SharedText<place_bytes> waits_at;
};

// What the receiver says to a message that is offered.
enum class OfferAnswer : std::uint32_t {
  accepted,
  declined,  // send it through the channel
  never,     // the system does not let this rank map the sender's memory
};

// What a slot of a channel holds of a message.
enum class SlotContent : std::uint8_t {
  piece,
  offer,    // where it is; the message itself does not follow, unless that is declined
  refusal,  // that the sender has no memory for it; nothing follows
};

// One direction between two ranks. The receiver writes this, but for `source` and `copy`; the sender the slots behind
// it. For each slot there is room for a piece elsewhere, which the sender reserves.
struct alignas(line_bytes) Channel {
  std::atomic<std::uint64_t> read;      // slots emptied so far
  std::atomic<std::uint64_t> refused;   // number of the last message that did not fit its receive
  std::atomic<std::uint64_t> answered;  // number of the last message that was offered; written after
  std::atomic<OfferAnswer> answer;
  std::atomic<std::uint32_t> exchanged;  // a bit for each slot whose room the receiver has exchanged: channel_rooms.hpp
  Place destination;  // where the tensor of the receive is that it was accepted for, if it is lent; written before
  Place source;       // where the tensor that is offered is; written before its slot
  LentCopyState copy;
};

// One cache line, which has a small payload too; a larger one is in the room of this slot or of the one back.
struct alignas(64) ChannelSlot {
  std::atomic<std::uint64_t> number;  // written last: how often a slot of the channel has been filled, with this one
  std::uint64_t message;              // number of the message in this channel, from 1
  std::uint64_t bytes;                // of the whole message
  std::uint64_t offset;               // of this slot's payload in it
  std::int32_t tag;
  std::uint8_t has_wide_tag;  // 1 where 2 to the power of 32 is to be added to the tag
  Dtype dtype;
  SlotContent content;
  bool has_others_room;  // what does not fit into `small` lies in the room of the slot of the channel back
  alignas(8) std::byte small[24];

  std::int64_t full_tag() const { return tag + (std::int64_t{has_wide_tag} << 32); }
  void set_tag(std::int64_t full) {
    has_wide_tag = full == static_cast<std::int32_t>(full) ? 0 : 1;
    tag = static_cast<std::int32_t>(full - (std::int64_t{has_wide_tag} << 32));
  }
};
static_assert(sizeof(ChannelSlot) == 64);

// Which ranks share a segment: all of the group, or those of one host, between which no messages go through it.
enum class Reach : std::uint8_t { one_host, several_hosts };

// Offsets into the segment of a group of `size` ranks.
class SharedLayout {
 public:
  explicit SharedLayout(int size, Reach reach = Reach::one_host);

  int size() const { return size_; }
  std::size_t large_slot_bytes() const { return large_slot_; }  // of a ring
  std::size_t total_bytes() const { return total_; }
  std::size_t channel_payload_bytes() const { return channel_payload_; }
  std::size_t bytes_at_first() const { return at_first_; }  // from the beginning on, which every group needs
  std::size_t header() const { return header_.start; }
  std::size_t arrival(int rank, unsigned parity) const { return at(arrivals_, rank) + parity * sizeof(ArrivalLine); }
  std::size_t call(int rank, std::uint64_t sequence) const {
    return at(calls_, rank) + (sequence % call_slots) * call_stride_;
  }
  std::size_t progress(int rank) const { return at(progress_, rank); }
  std::size_t doorbell(int rank) const { return at(doorbells_, rank); }
  std::size_t status(int rank) const { return at(status_, rank); }
  std::size_t note(int rank) const { return at(notes_, rank); }
  std::size_t small_ring(int rank) const { return at(small_rings_, rank); }
  std::size_t ring(int rank) const { return at(rings_, rank); }
  std::size_t lent(int rank, LentFor use) const {
    return at(lent_, rank) + static_cast<std::size_t>(use) * lent_allocations * sizeof(LentAllocation);
  }
  std::size_t places(int rank, unsigned parity) const { return at(places_, rank) + parity * places_stride_; }
  std::size_t direct(int rank) const { return at(directs_, rank); }
  std::size_t cross(int rank) const { return at(crosses_, rank); }
  std::size_t channel(int from, int to) const { return at(channels_, from * size_ + to); }
  std::size_t channel_slot(int from, int to, std::uint64_t slot) const {
    return channel(from, to) + sizeof(Channel) + (slot % channel_slots) * line_bytes;
  }
  // Where the rooms of a channel's slots begin.
  std::size_t channel_rooms(int from, int to) const { return at(rooms_, from * size_ + to); }
  std::size_t channel_rooms_bytes() const { return channel_slots * room_stride_; }
  std::size_t channel_room(int from, int to, std::uint64_t slot) const {
    return channel_rooms(from, to) + (slot % channel_slots) * room_stride_;
  }

 private:
  struct Region {
    std::size_t start = 0;
    std::size_t stride = 0;
  };
  static std::size_t at(const Region& region, int index) {
    return region.start + static_cast<std::size_t>(index) * region.stride;
  }
  Region add(std::size_t count, std::size_t bytes);

  int size_;
  std::size_t large_slot_;
  std::size_t total_ = 0;
  std::size_t at_first_ = 0;
  std::size_t channel_payload_ = 0;
  std::size_t room_stride_ = 0;
  std::size_t call_stride_ = 0;
  std::size_t places_stride_ = 0;
  Region header_, arrivals_, calls_, progress_, doorbells_, status_, notes_, places_, directs_, crosses_, channels_,
      small_rings_, lent_, rooms_, rings_;
};

}  // namespace shim
