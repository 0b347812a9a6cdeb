// How a thread computes with floats.
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <cstdint>

namespace shim {

// Whether subnormal numbers are taken for and flushed to zero, and how is rounded: each thread has its own, and some
// frameworks set it for theirs.
class FloatControl {
 public:
  static FloatControl of_this_thread() { return FloatControl(read() & mask); }

  void apply() const {
    const std::uint64_t now = read();
    if ((now & mask) != bits_) write((now & ~mask) | bits_);
  }

 private:
  explicit FloatControl(std::uint64_t bits) : bits_(bits) {}

#if defined(__SSE__)
  static constexpr std::uint64_t mask = 0xe040;  // flush to zero, rounding, subnormals are zeros
  static std::uint64_t read() { return _mm_getcsr(); }
  static void write(std::uint64_t bits) { _mm_setcsr(static_cast<unsigned>(bits)); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t mask = 0x3c80000;  // FZ16, rounding, FZ, and DN
  static std::uint64_t read() {
    std::uint64_t bits;
    asm volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
  }
  static void write(std::uint64_t bits) { asm volatile("msr fpcr, %0" : : "r"(bits)); }
#else
  static constexpr std::uint64_t mask = 0;
  static std::uint64_t read() { return 0; }
  static void write(std::uint64_t) {}
#endif

  std::uint64_t bits_;
};

}  // namespace shim
