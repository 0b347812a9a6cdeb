// Times that processes of one machine can compare: nanoseconds of its steady clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace shim {

inline std::int64_t steady_ns(std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now()) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace shim
