// Memory for tensors that the ranks of any group can read where it is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "platform/segment.hpp"

namespace shim {

// Where an address lies in an allocation of this process.
struct SharedPlace {
  std::uint64_t allocation;  // its number, never used again
  std::size_t offset;
  std::size_t bytes;  // of the allocation
  std::uint64_t inode;
  int file;
};

// Is told when an allocation of this process is freed, by the thread that frees it, before the memory is gone.
class LenderOfAllocations {
 public:
  virtual void allocation_is_freed(std::uint64_t allocation) = 0;

 protected:
  ~LenderOfAllocations() = default;
};

// Zeroed memory in a sealed memfd, freed with its owner; ranks that have mapped it keep what they have. Its descriptor
// stays open as long as it lives, because others open it through that. A forked child has the same memory, but there it
// counts as private.
class SharedAllocation {
 public:
  // Throws Failure(engine) when there is not enough memory, or are too many open files.
  explicit SharedAllocation(std::size_t bytes);
  ~SharedAllocation();
  SharedAllocation(const SharedAllocation&) = delete;
  SharedAllocation& operator=(const SharedAllocation&) = delete;

  std::byte* data() const { return segment_.data(); }
  std::size_t bytes() const { return segment_.size(); }
  int file() const { return segment_.file(); }
  // Whether an operation that it was lent to was given up: other ranks may write to it for as long as they map it.
  bool is_given_up() const { return is_given_up_.load(); }

  // The allocation of this process in which all of [data, data + bytes) lies, or nothing. Costs next to nothing where
  // there are none. The caller sees to it that it lives on.
  static std::optional<SharedPlace> find(const std::byte* data, std::size_t bytes);

  // Does nothing when there is none of this number any more.
  static void give_up(std::uint64_t number);

  static void add_lender(LenderOfAllocations& lender);
  // Afterwards `lender` is not told anything.
  static void remove_lender(LenderOfAllocations& lender);

 private:
  Segment segment_;
  std::uint64_t number_;
  std::uint64_t generation_;
  std::atomic<bool> is_given_up_{false};
};

}  // namespace shim
