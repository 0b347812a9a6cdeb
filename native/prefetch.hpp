// Asks the processor for memory before it is needed.
#pragma once

namespace shim {

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

}  // namespace shim
