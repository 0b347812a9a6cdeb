// Another rank's tensor where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace shim {

// Read and written by the processor where this process has mapped it, else by the kernel, which reads and writes
// another process's memory.
class RemoteTensor {
 public:
  // `process` is 0 where this one cannot reach it.
  RemoteTensor(int process, std::uint64_t address) : process_(process), address_(address) {}
  // What it is read into, or it itself, is written past the caches where it `streams`.
  RemoteTensor(std::shared_ptr<std::byte> mapped, bool streams) : mapped_(std::move(mapped)), streams_(streams) {}

  bool is_in_reach() const { return mapped_ != nullptr || process_ != 0; }
  // Whether the first and the last of so many bytes can be read. The kernel does not read all that a processor can.
  bool ends_can_be_read(std::size_t bytes) const;
  // Copy from `start` on. False where not all of it can be; errno says why.
  bool read(std::size_t start, std::byte* to, std::size_t bytes) const;
  bool write(std::size_t start, const std::byte* from, std::size_t bytes) const;

 private:
  int process_ = 0;
  std::uint64_t address_ = 0;
  std::shared_ptr<std::byte> mapped_;
  bool streams_ = false;
};

}  // namespace shim
