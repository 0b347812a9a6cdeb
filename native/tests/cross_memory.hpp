// Long messages of bytes, and groups of which two ranks read each other's tensors through the kernel.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "lending/shared_allocation.hpp"
#include "messages/lent_copy.hpp"
#include "tests/ranks.hpp"

namespace shim::tests {

using Bytes = std::vector<std::uint8_t>;
inline constexpr std::size_t chunk = LentCopy::chunk;

inline Thresholds crossing_from(std::uint64_t bytes) {
  Thresholds thresholds = usual_thresholds();
  thresholds.swap = bytes;
  return thresholds;
}

// Whether the last operation was copied so.
inline bool went_across(Rank& me) {
  const std::uint64_t last = me.group().sequence;
  return me.group().cross(0).accepted == last || me.group().cross(1).accepted == last;
}

inline Bytes message(std::size_t bytes, unsigned seed) {
  Bytes data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + seed);
  return data;
}

// Bytes in shared memory, or in the process's own.
class Tensor {
 public:
  Tensor(const Bytes& values, bool is_shared) : private_(values) {
    if (!is_shared) return;
    shared_ = std::make_unique<SharedAllocation>(std::max<std::size_t>(values.size(), 1));
    std::copy(values.begin(), values.end(), data());
  }
  std::uint8_t* data() { return shared_ ? reinterpret_cast<std::uint8_t*>(shared_->data()) : private_.data(); }
  TensorView view() {
    TensorView view = view_of(private_);
    view.data = reinterpret_cast<std::byte*>(data());
    return view;
  }
  bool is_given_up() const { return shared_ && shared_->is_given_up(); }
  bool has(const Bytes& values) { return std::equal(values.begin(), values.end(), data(), data() + private_.size()); }

 private:
  Bytes private_;
  std::unique_ptr<SharedAllocation> shared_;
};

inline std::unique_ptr<TransferTask> send(Rank& me, const TensorView& view, int peer, int tag = 0) {
  return std::make_unique<TransferTask>(me.progress(), view, true, peer, tag);
}

inline std::unique_ptr<TransferTask> send(Rank& me, Bytes& data, int peer, int tag = 0) {
  return send(me, view_of(data), peer, tag);
}

inline std::unique_ptr<TransferTask> receive(Rank& me, const TensorView& view, int peer, int tag = 0) {
  return std::make_unique<TransferTask>(me.progress(), view, false, peer, tag);
}

inline std::unique_ptr<TransferTask> receive(Rank& me, Bytes& data, int peer, int tag = 0) {
  return receive(me, view_of(data), peer, tag);
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

}  // namespace shim::tests
