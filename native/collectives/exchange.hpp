// Moves data that does not fit into the arrival lines: through rings of chunks that stay in the processors' caches.
//
// All ranks go through the same number of steps. In a step, a rank fills one slot of its ring, or its cells of all
// rings, and reads what it needs from the others' slots of that step. A slot is filled again when every rank has said
// that it is done with the step that used it, or has arrived at an operation after it. Filling runs one step ahead of
// reading, so copying in and copying out overlap between ranks. Where ranks make something of what they read that the
// others need, reading that is one step behind.
//
// Small data goes through small slots, which every group has; for the large ones memory is reserved when the first
// operation needs them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collectives/ring_memory.hpp"
#include "group/group.hpp"
#include "machine/copies.hpp"
#include "machine/prefetch.hpp"
#include "platform/fault_points.hpp"
#include "tensors/tensor_view.hpp"

namespace shim {

// Bytes [start, start + bytes) of a part; empty past its end.
inline Part piece_of(const Part& part, std::size_t start, std::size_t bytes) {
  if (start >= part.bytes) return {part.data, 0};
  return {part.data + start, std::min(bytes, part.bytes - start)};
}

// The smallest slots that hold so many bytes, or as many as any slot holds.
constexpr SlotSize slot_for(std::size_t bytes) { return bytes <= small_slot_bytes ? SlotSize::small : SlotSize::large; }

// Slots that hold a chunk for every rank are cut into equal cells of this many bytes.
inline std::size_t cell_bytes(const Group& group, SlotSize slot) {
  const std::size_t bytes = slot == SlotSize::small ? small_slot_bytes : group.layout().large_slot_bytes();
  return bytes / static_cast<std::size_t>(group.size()) / cell_unit * cell_unit;
}

// The smallest slots whose cells hold the largest part, or as much of it as any cells do.
inline SlotSize slot_for_cells(const Group& group, std::size_t largest_part) {
  const std::size_t cell = cell_bytes(group, SlotSize::small);  // 0 in a group of more than 64 ranks
  return cell > 0 && largest_part <= cell ? SlotSize::small : SlotSize::large;
}

class Exchange {
 public:
  // `chunk` is the bytes of each part that one step moves; a slot holds one chunk, or one for each rank. All ranks say
  // the same. Throws Failure(memory), on all ranks, when there is no memory for such slots.
  Exchange(Group& group, SlotSize slot, std::size_t largest_part, std::size_t chunk)
      : group_(group), slot_(slot), base_(group.steps), chunk_(chunk), steps_((largest_part + chunk - 1) / chunk) {
    if (slot == SlotSize::large && !group.has_rings) reserve_rings(group);
  }

  SlotSize slot() const { return slot_; }
  std::size_t chunk() const { return chunk_; }
  std::uint64_t steps() const { return steps_; }
  std::size_t start_of(std::uint64_t step) const { return step * chunk_; }
  // Which step of the group that is.
  std::uint64_t number_of(std::uint64_t step) const { return base_ + step; }

  // Waits until this rank may fill its slot, or cells, of group.steps: the first step of the operation it is about to
  // arrive at. The arrival says to the others which are filled. Returns none where there are no such slots yet.
  static SlotSize first_slot(Group& group, SlotSize slot) {
    if (slot == SlotSize::large && !group.has_rings) return SlotSize::none;
    wait_until_free(group, group.steps + 1);
    return slot;
  }

  // write(step) fills own_slot(step), or this rank's cells; read(step) takes what it needs through slot_of or cell_of.
  template <class Write, class Read>
  void run(const Write& write, const Read& read) {
    begin(write, 0);
    for (std::uint64_t step = 0; step < steps_; ++step) {
      if (step + 1 < steps_) fill(step + 1, write);
      finish(step, read);
    }
    end();
  }

  // The same in three parts: make(step) reads the others' slots and completes this rank's own slot with what it makes
  // of them; read(step) takes what the others have made, through made_cell_of.
  template <class Write, class Make, class Read>
  void run(const Write& write, const Make& make, const Read& read) {
    begin(write, base_ + steps_);
    for (std::uint64_t step = 0; step < steps_; ++step) {
      if (step + 1 < steps_) fill(step + 1, write);
      make(step);
      group_.progress(group_.rank()).made.exchange(base_ + step + 1);
      group_.ring_bells();
      if (step > 0) finish(step - 1, read);
    }
    if (steps_ > 0) finish(steps_ - 1, read);
    end();
  }

  std::byte* own_slot(std::uint64_t step) const { return group_.ring_slot(group_.rank(), base_ + step, slot_); }

  // Waits until `peer` has filled its slot of `step`.
  const std::byte* slot_of(int peer, std::uint64_t step) const {
    wait_until_filled(peer, step);
    return group_.ring_slot(peer, base_ + step, slot_filled_by(peer, step));
  }

  // Of slots with a cell for each rank, that of `peer` for this rank.
  const std::byte* cell_of(int peer, std::uint64_t step, std::size_t bytes) const {
    wait_until_filled(peer, step);
    const SlotSize slot = slot_filled_by(peer, step);
    return group_.ring_cell(peer, group_.rank(), base_ + step, slot, slot == slot_ ? bytes : cell_bytes(group_, slot));
  }

  // Waits until `peer` has made what it makes of `step`.
  const std::byte* made_cell_of(int peer, std::uint64_t step, std::size_t bytes) const {
    const std::uint64_t wanted = base_ + step + 1;
    group_.wait_for(peer, [this, wanted](int rank) { return group_.progress(rank).made.load() >= wanted; });
    return group_.made_cell(peer, base_ + step, slot_, bytes);
  }

 private:
  // Counts the steps. After an operation of one, the next may be as small, and fill no more than its slot's beginning.
  void end() {
    constexpr std::size_t lines = 8;
    group_.steps = base_ + steps_;
    if (steps_ != 1) return;
    const std::byte* const slot = group_.ring_slot(group_.rank(), group_.steps, slot_);
    for (std::size_t i = 0; i < lines; ++i) prefetch_to_write(slot + i * cache_line_bytes);
  }

  void wait_until_filled(int peer, std::uint64_t step) const {
    const std::uint64_t wanted = base_ + step + 1;
    // Asked of each rank that has gone meanwhile, too: some may have filled theirs before they arrived, others after.
    group_.wait_for(peer, [this, wanted, step](int rank) {
      return (step == 0 && has_filled_first(rank)) || group_.progress(rank).ready.load() >= wanted;
    });
  }

  SlotSize filled_first(int rank) const { return group_.arrival(rank, group_.sequence).filled; }
  bool has_filled_first(int rank) const { return filled_first(rank) != SlotSize::none; }

  // Where parts differ in size, a rank that filled its slot before it arrived knew only its own, and may have taken a
  // small one.
  SlotSize slot_filled_by(int peer, std::uint64_t step) const {
    return step == 0 && has_filled_first(peer) ? filled_first(peer) : slot_;
  }

  // Waits until no rank needs what is in the slot of chunk `number`, counted from 1.
  static void wait_until_free(Group& group, std::uint64_t number) {
    if (number <= group.steps_over + ring_slots) return;
    const auto is_done = [&group, number](int rank) {
      return rank == group.rank() || group.progress(rank).done.load() >= number - ring_slots;
    };
    for (int peer = 0; peer < group.size(); ++peer) group.wait_for(peer, is_done);
  }

  template <class Write>
  void begin(const Write& write, std::uint64_t made) {
    group_.given.filled = steps_ > 0 ? base_ + steps_ : 0;
    group_.given.may_be_first = steps_ == 1;
    group_.given.made = steps_ > 0 ? made : 0;
    group_.tell_agreed();
    if (steps_ > 0 && !has_filled_first(group_.rank())) fill(0, write);
  }

  template <class Read>
  void finish(std::uint64_t step, const Read& read) {
    read(step);
    group_.progress(group_.rank()).done.exchange(base_ + step + 1);
    group_.ring_bells();
  }

  template <class Write>
  void fill(std::uint64_t step, const Write& write) {
    if (!group_.given.fills(group_.rank())) return;
    const std::uint64_t number = base_ + step + 1;
    wait_until_free(group_, number);
    write(step);
    fault_point("in_transfer");
    group_.progress(group_.rank()).ready.exchange(number);
    group_.ring_bells();
  }

  Group& group_;
  SlotSize slot_;
  std::uint64_t base_;
  std::size_t chunk_;
  std::uint64_t steps_;
};

// After this rank, and no other, has read so much of another one's slot, cell or room, where that one will fill it anew
// and this one will not. (Ranks that both fill take turns: see Group::ring_slot.) Worth it where this rank has less to
// do than the other one; the root of a gather, which copies its own part too, has more.
inline void claim_read(const Group& group, const std::byte* slot, std::size_t bytes) {
  if (bytes >= group.thresholds().claim) claim_lines(const_cast<std::byte*>(slot), bytes);
}

// Fills this rank's cells of a step of the group, for all other ranks, with their bytes of `parts` from `start` on.
inline void fill_cells(Group& group, std::uint64_t step, SlotSize slot, const Parts& parts, std::size_t start) {
  const std::size_t cell = cell_bytes(group, slot);
  for (int peer = 0; peer < group.size(); ++peer) {
    if (peer == group.rank()) continue;
    const Part piece = piece_of(parts[peer], start, cell);
    group.ring_stores().copy(group.ring_cell(group.rank(), peer, step, slot, cell), piece.data, piece.bytes);
  }
}

}  // namespace shim
