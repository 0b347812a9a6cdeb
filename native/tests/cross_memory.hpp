// Long messages of bytes, and groups in which they are copied across.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "../cross_copy.hpp"
#include "ranks.hpp"

namespace shim::tests {

using Bytes = std::vector<std::uint8_t>;
inline constexpr std::size_t chunk = CrossCopy::chunk;

inline Thresholds crossing_from(std::uint64_t bytes) {
  Thresholds thresholds = usual_thresholds();
  thresholds.cross = thresholds.swap = bytes;
  return thresholds;
}

inline Bytes message(std::size_t bytes, unsigned seed) {
  Bytes data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + seed);
  return data;
}

inline std::unique_ptr<TransferTask> send(Rank& me, Bytes& data, int peer, int tag = 0) {
  return std::make_unique<TransferTask>(me.progress(), view_of(data), true, peer, tag);
}

inline std::unique_ptr<TransferTask> receive(Rank& me, Bytes& data, int peer, int tag = 0) {
  return std::make_unique<TransferTask>(me.progress(), view_of(data), false, peer, tag);
}

inline FailureKind failure_of(TransferTask& task, double timeout = -1) {
  try {
    task.wait(timeout);
  } catch (const Failure& failure) {
    return failure.kind;
  }
  throw std::runtime_error("no failure");
}

// Pages of which some cannot be read by anybody.
class Holed {
 public:
  Holed(std::size_t bytes, std::size_t from, std::size_t until)
      : bytes_(bytes), memory_(::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    ::mprotect(data() + from, until - from, PROT_NONE);
  }
  ~Holed() { ::munmap(memory_, bytes_); }
  Holed(const Holed&) = delete;
  Holed& operator=(const Holed&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  std::size_t bytes_;
  void* memory_;
};

// Memory that a processor reads, but the kernel does not; nothing where there is none.
class Secret {
 public:
  explicit Secret(std::size_t bytes) : bytes_(bytes) {
    const int file = static_cast<int>(::syscall(SYS_memfd_secret, 0));
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) return;
    memory_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
  }
  ~Secret() {
    if (exists()) ::munmap(memory_, bytes_);
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  bool exists() const { return memory_ != MAP_FAILED; }
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  std::size_t bytes_;
  void* memory_ = MAP_FAILED;
};

inline std::byte* data_of(Bytes& bytes) { return reinterpret_cast<std::byte*>(bytes.data()); }
inline std::uint64_t address_of(const Bytes& bytes) { return reinterpret_cast<std::uintptr_t>(bytes.data()); }

}  // namespace shim::tests
