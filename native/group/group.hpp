// One rank's membership of a group: its shared memory, its place in the sequence of operations, and how it waits.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "group/carrier.hpp"
#include "group/crowd.hpp"
#include "group/elsewhere.hpp"
#include "group/peers.hpp"
#include "group/shared_layout.hpp"
#include "group/wait_hooks.hpp"
#include "group/withdrawal.hpp"
#include "machine/slot_stores.hpp"
#include "platform/failure.hpp"
#include "platform/keyed_hash.hpp"
#include "platform/pause.hpp"
#include "platform/segment.hpp"

namespace shim {

inline constexpr double longest_timeout = 1e9;  // seconds; clocks do not overflow

// Work that any waiting thread of the group carries on with: the point-to-point messages.
class BackgroundWork {
 public:
  virtual ~BackgroundWork() = default;
  virtual bool advance() = 0;  // whether anything moved
};

class Loans;

// Threads: operations are carried out by one thread at a time; Progress sees to that. `mark_lost` may come from any
// thread. After a Failure of kind peer_lost or timeout, or Interrupted, the group is failed for good on this rank.
class Group {
 public:
  // `segment` is shared only by tests whose ranks are threads. Times are seconds. Throws Failure(engine) when what rank
  // 0 wrote into its header cannot be.
  // `here` are the group ranks that share it; all of them, where none are given.
  Group(std::string name, std::vector<int> world_ranks, int rank, double timeout, std::shared_ptr<Segment> segment,
        const std::vector<int>& here = {});
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const std::string& name() const { return name_; }
  int rank() const { return rank_; }
  int size() const { return layout_.size(); }
  double timeout() const { return timeout_; }
  // Of the waits of this rank that begin from now on.
  void set_timeout(double seconds) { timeout_ = std::min(seconds, longest_timeout); }
  int world_rank(int rank) const { return world_ranks_[static_cast<std::size_t>(rank)]; }
  // Whether it shares this rank's memory. Of those that do the first one leads.
  bool is_here(int rank) const { return elsewhere_[static_cast<std::size_t>(rank)] == nullptr; }
  int leader() const { return leader_; }
  const SharedLayout& layout() const { return layout_; }
  const Thresholds& thresholds() const { return thresholds_; }
  bool is_crowded() const { return is_crowded_; }
  const KeyedHash& hash() const { return hash_; }

  // False in a forked child, which must leave the group alone.
  bool is_of_this_process() const;
  // Throws Failure(state) in a forked child.
  void check_this_process() const;
  // Throws Failure(state) when the group was closed or made before a fork, and the old failure when it has failed.
  void check_usable() const;
  bool is_usable() const { return is_of_this_process() && !failed_.load() && !has_left(); }
  // Tells the others that this rank is gone, and why if there is something to say; they raise when they wait for it.
  // Idempotent.
  void leave(const std::string& why = {});
  bool has_left() const { return left_.load(std::memory_order_relaxed); }
  // The others: which are there, and how those went that are not.
  const Peers& peers() const { return peers_; }
  // Reads from the pidfds which processes the others are; before anything needs them. Else they are this process.
  void set_processes(const std::vector<Descriptor>& pidfds) { peers_.set_processes(pidfds); }
  bool is_gone(int rank) const { return peers_.is_gone(rank); }
  // Says that the process of group rank `rank` died, and how: "was killed by SIGKILL", empty where nobody knows.
  void mark_lost(int rank, std::string how = {});
  // Throws Failure(peer_lost), and fails the group, when `rank` is gone.
  void check_present(int rank);

  ArrivalLine& arrival(int rank, std::uint64_t sequence) const {
    return *at<ArrivalLine>(layout_.arrival(rank, sequence & 1));
  }
  CallDescriptor& call(int rank, std::uint64_t sequence) const {
    return *at<CallDescriptor>(layout_.call(rank, sequence));
  }
  // The tables behind a CallDescriptor: `size` counts sent to, then `size` counts received from each rank.
  std::uint64_t* call_table(int rank, std::uint64_t sequence) const {
    return reinterpret_cast<std::uint64_t*>(&call(rank, sequence) + 1);
  }
  // Text that ends with a zero.
  char* refusal(int rank, std::uint64_t sequence) const {
    return reinterpret_cast<char*>(call_table(rank, sequence) + 2 * size());
  }
  CallPlace& call_place(int rank, std::uint64_t sequence) const {
    if (!is_here(rank)) return elsewhere(rank).places[sequence % call_slots];
    return *reinterpret_cast<CallPlace*>(refusal(rank, sequence) + refusal_bytes);
  }
  RankNote& note(int rank) const { return *notes_[static_cast<std::size_t>(rank)]; }
  // Of a rank that is not here.
  Elsewhere& elsewhere(int rank) const { return *elsewhere_[static_cast<std::size_t>(rank)]; }
  ProgressLine& progress(int rank) const { return *at<ProgressLine>(layout_.progress(rank)); }
  // What `rank` fills in a step for all the others. Two ranks take turns with their rings: each fills the slot that it
  // was the last to read, which its own caches have.
  std::byte* ring_slot(int rank, std::uint64_t step, SlotSize slot) const {
    const int owner = size() == 2 && step / ring_slots % 2 == 1 ? 1 - rank : rank;
    return slot_in_ring(owner, step, slot);
  }
  // What it fills for `peer`, of slots with a cell of so many bytes for each rank. Every two ranks take turns with
  // those for each other, which lie at the same place in both ranks' slots.
  std::byte* ring_cell(int rank, int peer, std::uint64_t step, SlotSize slot, std::size_t bytes) const {
    const int owner = step / ring_slots % 2 == 1 ? peer : rank;
    return slot_in_ring(owner, step, slot) + cell_place(rank, peer) * bytes;
  }
  // What it makes of the others' cells for it, for all of them: where none of these lies.
  std::byte* made_cell(int rank, std::uint64_t step, SlotSize slot, std::size_t bytes) const {
    return ring_slot(rank, step, slot) + cell_place(rank, rank) * bytes;
  }
  // Whether there is memory now for this rank's large slots; which others may touch once it has said so.
  bool reserve_ring() const { return segment_->reserve(layout_.ring(rank_), ring_slots * layout_.large_slot_bytes()); }
  // Whether there is for all ranks'. In a group across hosts each rank reserves them, as its host has use for them.
  bool reserve_rings();
  // `lent_allocations` of them.
  LentAllocation* lent_by(int rank, LentFor use) const { return at<LentAllocation>(layout_.lent(rank, use)); }
  // Whether there is memory now for this rank's.
  bool reserve_lent(LentFor use) const {
    return segment_->reserve(layout_.lent(rank_, use), lent_allocations * sizeof(LentAllocation));
  }
  // `size` places, and at least two.
  Place* places(int rank, std::uint64_t sequence) const { return at<Place>(layout_.places(rank, sequence & 1)); }
  DirectLine& direct(int rank) const { return *at<DirectLine>(layout_.direct(rank)); }
  CrossLine& cross(int rank) const { return *at<CrossLine>(layout_.cross(rank)); }
  Channel& channel(int from, int to) const { return *at<Channel>(layout_.channel(from, to)); }
  ChannelSlot& channel_slot(int from, int to, std::uint64_t slot) const {
    return *at<ChannelSlot>(layout_.channel_slot(from, to, slot));
  }
  // Of the payload of a slot.
  std::byte* channel_room(int from, int to, std::uint64_t slot) const {
    return at<std::byte>(layout_.channel_room(from, to, slot));
  }
  // Whether there is memory now for those of the channel to `peer`.
  bool reserve_rooms(int peer) const {
    return segment_->reserve(layout_.channel_rooms(rank_, peer), layout_.channel_rooms_bytes());
  }

  // Returns once ready_for(peer), which reads shared memory with sequentially consistent loads and stays true.
  // Throws Failure(peer_lost) when a rank for which it is not true is gone, Failure(timeout) after the timeout; `what`
  // says in the message what was waited for, the current operation unless it is given.
  template <class ReadyFor>
  void wait_for(int peer, const ReadyFor& ready_for, const std::function<std::string()>& what = {}) {
    for (int poll = 0; poll < quick_polls_; ++poll) {
      if (ready_for(peer)) return;
      BackgroundWork* background = background_.load(std::memory_order_relaxed);
      if (background != nullptr && background->advance()) {
        if (ready_for(peer)) return;
        break;  // there is more to do than to poll, which the owner of the thread should know of
      }
      pause_processor();
    }
    wait_slowly(peer, ready_for, what);
  }
  // Wakes the ranks that sleep; called after anything they may wait for was written with a sequentially consistent
  // store.
  void ring_bells() const {
    for (int peer = 0; peer < size(); ++peer) ring_bell(peer);
  }
  void ring_bell(int peer) const;

  // Throws Interrupted, after which the group is given up; `in_operation` says that its thread carries one out.
  void check_interrupted(bool in_operation);
  // After an interrupted wait for what nobody can wait for again.
  void give_up_interrupted();

  // Says to the others on which processor this rank is.
  void tell_processor() { crowd_.tell_processor(); }

  // Of the one thread that carries out an operation.
  Loans& loans() const { return *loans_; }
  SlotStores& ring_stores() { return ring_stores_; }
  // Of the thread that carries on with the messages.
  Loans& message_loans() const { return *message_loans_; }

  // `work` is carried on with while a thread of this group waits; null ends that.
  void set_background_work(BackgroundWork* work) { background_.store(work); }
  // Remembers that the group failed on this rank, and lets the others know; the first failure is the one that counts.
  // `fail` also throws `failure`.
  void record(const Failure& failure);
  [[noreturn]] void fail(const Failure& failure);

  // What carries its collectives out, and why, for who asks. Set before anybody can.
  std::string engine;
  // Whether it serves another group, which tells of waits in its place. Set before anybody waits.
  bool is_part_of_another = false;
  // Where the ranks share no memory: what takes this rank's words to the others. Set before anybody uses the group.
  Carrier* carrier = nullptr;
  // There, the most ranks that one host has. Likewise.
  std::size_t most_of_a_host = 1;
  // Of the one thread that carries out an operation, which has arrived and has all it needs: returns when this rank may
  // take the result. Throws Failure(peer_lost), and fails the group, where another rank has withdrawn.
  void settle();
  // The second part of that, where every rank has given all.
  void check_nobody_withdrew();
  // Of the same thread, which knows what the others need of it: says so where the ranks have agreed within the
  // operation which way the data goes (`given.agreed`). Nobody takes the result before all have.
  void tell_agreed();
  // Of the same thread, before it gives the operation up. False where a rank may have the result: then this one is to
  // go on, as it will have it at once.
  bool withdraw();
  // What a rank that shares no memory with this one has said of its end.
  void take_ending(int rank, RankState state, int cause, std::string_view reason, bool has_left);

  // Whether a wait of some thread of this rank is in its note.
  std::atomic<bool> has_note{false};

  // Of the one thread that carries out an operation.
  std::uint64_t sequence = 0;    // the last operation this rank arrived at
  std::uint64_t confirmed = 0;   // the last operation all ranks were seen to arrive at
  std::uint64_t steps = 0;       // chunks of all operations so far
  std::uint64_t steps_over = 0;  // of which no rank needs anything any more, for all that is known
  bool has_rings = false;        // all ranks have reserved theirs
  Given given;                   // in the operation under way

 private:
  template <class T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(segment_->data() + offset);
  }
  std::byte* slot_in_ring(int owner, std::uint64_t step, SlotSize slot) const {
    const std::uint64_t number = step % ring_slots;
    if (slot == SlotSize::small) return at<std::byte>(layout_.small_ring(owner)) + number * small_slot_bytes;
    return at<std::byte>(layout_.ring(owner)) + number * layout_.large_slot_bytes();
  }
  std::size_t cell_place(int rank, int peer) const {
    return static_cast<std::size_t>((rank + peer + size() - 1) % size());
  }
  Doorbell& doorbell(int rank) const { return *at<Doorbell>(layout_.doorbell(rank)); }
  StatusLine& status(int rank) const { return *statuses_[static_cast<std::size_t>(rank)]; }
  template <class Words>
  std::vector<Words*> words_of(std::size_t (SharedLayout::*place)(int) const, Words Elsewhere::* apart) const;
  using ReadyTest = std::function<bool(int)>;
  using Describe = std::function<std::string()>;
  void wait_slowly(int peer, const ReadyTest& ready_for, const Describe& what);
  void check_peers(const ReadyTest& ready_for, const Describe& what);
  void sleep_until_rung(int peer, const ReadyTest& ready_for, const Describe& what);
  bool has_given(int rank) const;
  void wait_for_decision(int rank);
  void tell_carrier();
  Failure lost_failure(int rank, const Describe& what) const;
  Failure later_failure() const;  // of a call after it

  std::string name_;
  std::vector<int> world_ranks_;
  int rank_;
  std::atomic<double> timeout_;  // seconds
  SharedLayout layout_;
  std::shared_ptr<Segment> segment_;
  Thresholds thresholds_;  // as rank 0 wrote them
  KeyedHash hash_;         // likewise
  std::uint64_t generation_;
  std::uint64_t identity_;
  int leader_;
  std::vector<std::unique_ptr<Elsewhere>> elsewhere_;  // by rank; none for those that are here
  std::vector<StatusLine*> statuses_;
  std::vector<RankNote*> notes_;
  Crowd crowd_;
  Peers peers_;
  bool is_crowded_;  // whether there are ranks without a processor of their own
  int quick_polls_;  // before anything else is looked at
  std::unique_ptr<Loans> loans_;
  std::unique_ptr<Loans> message_loans_;
  SlotStores ring_stores_;
  std::atomic<BackgroundWork*> background_{nullptr};
  std::atomic<bool> left_{false};
  std::atomic<bool> failed_{false};
  std::unique_ptr<Failure> failure_;  // written once, before failed_
  std::int64_t failed_at_ = 0;        // likewise; steady nanoseconds
  std::mutex failing_;
};

}  // namespace shim
