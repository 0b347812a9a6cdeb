// What the ranks of a group lend each other, for operations or for messages: tensors that the others read, and write,
// where they are.
//
// A rank says in shared memory in which file a SharedAllocation of its own lies. The others open that file through
// /proc/<pid>/fd, which the kernel allows to processes of the same user in one pid namespace, and map it until it is
// freed. Whether they can is tried, and agreed on, before it is relied on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "group/shared_layout.hpp"
#include "lending/shared_allocation.hpp"
#include "platform/segment.hpp"

namespace shim {

class Group;

// What a rank's ArrivalLine says of its tensors in one operation.
enum LoanFlag : std::uint16_t {
  lent = 1,      // all that the others need of them lies in lent allocations
  lent_now = 2,  // of one of which it is not known yet that the others could map it
};

// What one rank lends to the others of its group and what it has mapped of theirs. Used by the thread that carries out
// an operation, or carries on with the messages; allocations may be freed by any.
class Loans final : private LenderOfAllocations {
 public:
  Loans(Group& group, LentFor use);
  ~Loans();

  // Lends [data, data + bytes) and makes `place` say where that is. Returns the flags that hold of it. begin() comes
  // first, once for each operation or message.
  void begin() {
    unconfirmed_.clear();
    placed_.clear();
  }
  unsigned lend(const std::byte* data, std::size_t bytes, Place& place);
  // The operation that began last ended on this rank alone: the others may use what it lent for some time yet.
  void give_up() const;
  // All ranks have mapped what was lent since begin().
  void confirm();

  // The memory at `place` of `rank`, mapped if it was not, for as long as anybody has it; null when that cannot be
  // done, or is not there.
  std::shared_ptr<std::byte> map(int rank, const Place& place);
  // Gives up what is mapped of allocations that are no longer lent. By any thread, where all that is in use is held.
  void drop_freed() {
    if (has_mapped_.load(std::memory_order_relaxed)) drop_if_taken_back();
  }

  // Whether mapping has worked so far, as all ranks have agreed; nothing before it was tried.
  std::optional<bool> mapping_works;

 private:
  struct Lent {
    std::uint64_t slot;
    bool confirmed;
  };
  struct Mapped {
    std::uint64_t allocation;
    std::shared_ptr<Segment> segment;
  };

  void allocation_is_freed(std::uint64_t allocation) override;
  // A free slot, or else the one that was taken first and is not of this operation; nothing when there is none.
  std::optional<std::uint64_t> slot_to_use();
  void drop_if_taken_back();
  void cease_to_lend(std::uint64_t slot);

  // What lies there now, if it is still lent under that number; null where it is not, or cannot be mapped.
  std::shared_ptr<Segment> attach(int rank, const Place& place) const;

  Group& group_;
  LentFor use_;
  std::mutex mapping_;
  std::unordered_map<std::uint64_t, Mapped> mapped_;  // by rank and slot; guarded by mapping_
  std::atomic<bool> has_mapped_{false};
  std::mutex lending_;
  bool has_table_ = false;  // in shared memory, which is reserved when it is first needed; guarded by lending_
  std::unordered_map<std::uint64_t, Lent> lent_;  // by allocation; guarded by lending_
  std::vector<std::uint64_t> unconfirmed_;        // allocations
  std::vector<std::uint64_t> placed_;             // slots that this operation has places in
  std::uint64_t next_slot_ = 0;
  std::uint64_t seen_taken_back_ = 0;  // by all ranks, when mapped_ was last looked through; guarded by mapping_
};

}  // namespace shim
