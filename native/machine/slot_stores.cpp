#include "machine/slot_stores.hpp"

#include <algorithm>

#include "machine/copies.hpp"

namespace shim {
namespace {

constexpr std::size_t line = 64;
// Near caches take 7 to 40 bytes in a nanosecond, far ones 2 to 4.
constexpr std::chrono::nanoseconds slow_from{timed_bytes / 5};

// How long writing takes alone: neither reading, nor what the first access to a page costs.
std::chrono::nanoseconds time_to_copy(std::byte* to, const std::byte* from) {
  using Clock = std::chrono::steady_clock;
  for (std::size_t at = 0; at < timed_bytes; at += line)
    static_cast<void>(*const_cast<const volatile std::byte*>(from + at));
  *const_cast<volatile std::byte*>(to) = from[0];
  *const_cast<volatile std::byte*>(to + timed_bytes - 1) = from[timed_bytes - 1];
  const Clock::time_point begin = Clock::now();
  copy_bytes(to, from, timed_bytes);
  finish_streaming();  // which waits for other stores too
  return Clock::now() - begin;
}

}  // namespace

bool SlotTimes::time_next() {
  const bool is_in_doubt = 0 < slow_ && slow_ < enough;
  if (!is_in_doubt && ++passed_ < (stream() ? streamed_for_each_timed : cached_for_each_timed)) return false;
  passed_ = 0;
  return true;
}

void SlotTimes::add(std::chrono::nanoseconds taken) {
  slow_ = std::clamp(slow_ + (taken > slow_from ? 1 : -1), 0, enough);
}

void SlotStores::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes < streamed_from) return copy_bytes(to, from, bytes);
  const bool streams = times_.stream();
  if (times_.time_next()) {
    times_.add(time_to_copy(to, from));
    to += timed_bytes;
    from += timed_bytes;
    bytes -= timed_bytes;
  }
  if (!streams) return copy_bytes(to, from, bytes);
  stream_bytes(to, from, bytes);
  finish_streaming();
}

}  // namespace shim
