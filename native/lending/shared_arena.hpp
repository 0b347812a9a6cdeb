// Memory for the many tensors of a program, in few files that the other ranks can read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "lending/shared_allocation.hpp"

namespace shim {

// Hands out ranges of whole pages of SharedAllocations, and uses what is freed again. Any thread may use it. The files
// from before a fork hand out nothing more, in the parent and in the child: the other one may still be using what they
// hold. The child writes to pages of its own.
class SharedArena {
 public:
  // The arena of this process, which is never destroyed: tensors outlive everything else.
  static SharedArena& instance();

  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  static constexpr std::size_t page = 4096;  // what ranges are multiples of, in bytes, and aligned to

  // Null where there is not enough memory, or are too many open files. What the memory holds is undefined.
  void* allocate(std::size_t bytes) noexcept;
  // Whether `data` was an allocation of this arena, which is freed now.
  bool release(const void* data) noexcept;
  // The bytes of the allocation at `data`, whole pages; 0 when it is none of this arena.
  std::size_t bytes_at(const void* data) noexcept;

  // Between these, files without allocations are kept for the next ones. As many `return_empty` as `keep_empty`.
  void keep_empty() noexcept;
  void return_empty() noexcept;

  struct Usage {
    std::size_t allocated;  // bytes, all three
    std::size_t reserved;
    std::size_t files;
  };
  Usage usage() noexcept;

 private:
  struct File;
  using Files = std::map<const std::byte*, std::unique_ptr<File>>;

  SharedArena() = default;
  static void lock_for_fork();
  static void unlock_in_parent();
  static void unlock_in_child();

  std::byte* take_from_files(std::size_t bytes);
  // Files are made and given back while the arena is not locked, since that takes milliseconds.
  std::vector<std::unique_ptr<File>> without_empty_files();
  std::byte* add_file(std::size_t bytes);
  Files::iterator file_of(const std::byte* data);
  bool lies_outside(const std::byte* data) const;
  void retire_files();

  std::mutex mutex_;
  Files files_;
  int keepers_ = 0;
  // All files so far lie between these. They save most calls of release() the lock.
  std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX};
  std::atomic<std::uintptr_t> highest_{0};
};

}  // namespace shim
