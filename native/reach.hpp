// How the ranks of a group read each other's tensors where they are, without a copy in between.
//
// What lies in a SharedAllocation is lent: the rank says in shared memory which file it is, the others open that
// through /proc/<pid>/fd, once, and map it until it is freed. Any other memory can be copied from by process_vm_readv,
// where the kernel lets one process of the user read another: not in another pid namespace, nor under Yama's rules for
// ptrace. These could be loosened (PR_SET_PTRACER), but only for one process at a time or for all of the user's, and
// a debugger's own setting would be lost; so they are left alone. Both are tried before they are relied on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "segment.hpp"
#include "shared_allocation.hpp"
#include "shared_layout.hpp"

namespace shim {

class Group;

// How one rank's tensors can be reached in one operation, as its ArrivalLine tells.
enum ReachFlag : std::uint16_t {
  offered = 1,   // its places are known, and can be copied from
  lent = 2,      // all of them lie in lent allocations
  lent_now = 4,  // of one of which it is not known yet that the others could map it
};

// What one rank lends to the others of its group and what it has mapped of theirs. Used by the thread that carries out
// an operation; allocations may be freed by any.
class Reach final : private LenderOfAllocations {
 public:
  explicit Reach(Group& group);
  ~Reach();

  // Reads from the pidfds which processes the others are; before the first operation. Else they are this process.
  void set_processes(const std::vector<Descriptor>& pidfds);

  // Makes `place` say where [data, data + bytes) is. Returns the flags that hold of it. begin_lending() comes first,
  // once for each operation.
  void begin_lending() { unconfirmed_.clear(); }
  unsigned lend(const std::byte* data, std::size_t bytes, Place& place);
  // All ranks have mapped what was lent since.
  void confirm_lent();

  // The memory at `place` of `rank`, mapped if it was not; null when that cannot be done.
  std::byte* map(int rank, const Place& place);
  // Gives up what is mapped of allocations that are no longer lent.
  void drop_freed() {
    if (!mapped_.empty()) drop_freed_now();
  }
  std::size_t mapped_count() const { return mapped_.size(); }

  // Whether this process can copy from all others; tries it.
  bool can_copy() const;
  // Copies from memory of `rank`'s own. Throws Failure(peer_lost) when the rank is gone, and fails the group.
  void copy(int rank, std::uint64_t address, std::byte* to, std::size_t bytes) const;
  // Throws likewise unless `rank` is still in the operation that it lent its memory for; so what was read of it is good.
  void check_present(int rank) const;

  // What the ranks have agreed on, after they tried: nothing before.
  std::optional<bool> mapping_works;
  std::optional<bool> copying_works;

 private:
  struct Lent {
    std::uint64_t slot;
    bool confirmed;
  };
  struct Mapped {
    std::uint64_t allocation;
    Segment segment;
  };

  void allocation_is_freed(std::uint64_t allocation) override;
  void drop_freed_now();
  std::uint64_t key_of(int rank, std::uint64_t slot) const;

  Group& group_;
  std::vector<int> processes_;  // by rank; 0 for those that have no number here
  std::unique_ptr<std::atomic<std::uint64_t>> word_;
  std::unordered_map<std::uint64_t, Mapped> mapped_;  // by rank and slot
  std::mutex lending_;
  std::unordered_map<std::uint64_t, Lent> lent_;  // by allocation; guarded by lending_
  std::vector<std::uint64_t> unconfirmed_;        // allocations
  std::uint64_t next_slot_ = 0;
};

}  // namespace shim
