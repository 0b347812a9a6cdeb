// Long messages of bytes, and groups in which they are copied across.
#pragma once

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
  thresholds.cross = bytes;
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

inline std::byte* data_of(Bytes& bytes) { return reinterpret_cast<std::byte*>(bytes.data()); }
inline std::uint64_t address_of(const Bytes& bytes) { return reinterpret_cast<std::uintptr_t>(bytes.data()); }

}  // namespace shim::tests
