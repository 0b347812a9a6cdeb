// Has the processor get memory before it is needed, or hold it for who needs it next.
#pragma once

#include <cstddef>

namespace shim {

inline constexpr std::size_t cache_line_bytes = 64;

// Gets the cache lines from `start` on to be read.
inline void prefetch_to_read(const std::byte* start, std::size_t bytes) {
  asm volatile("");  // or compilers take a caller that does no more for one that does nothing, and leave it out
  for (std::size_t at = 0; at < bytes; at += cache_line_bytes) __builtin_prefetch(start + at);
}

// Gets the cache line at `place` to be written to: while others only have copies of it, a store takes as long as a
// line's way to them and back.
inline void prefetch_to_write(const void* place) {
#if defined(__x86_64__)
  // Written out, because compilers emit it only where told that the processor has it. One without it does nothing.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(place)));
#else
  __builtin_prefetch(place, 1);
#endif
}

// Makes cache lines that another processor has written, and this one has read, this one's own, by writing to them what
// is there. Nobody else may read or write them meanwhile. Some processors leave a line that is read to who wrote it: it
// takes that one long to write it anew while there is a copy of it, and a fifth of that to get it from an owner.
inline void claim_lines(std::byte* start, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += cache_line_bytes) {
    auto* const place = static_cast<volatile std::byte*>(start + at);
    *place = *place;
  }
}

}  // namespace shim
