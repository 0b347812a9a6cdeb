#include "machine/copies.hpp"

#include <algorithm>
#include <cstdint>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace shim {

#if defined(__SSE2__)
namespace {

constexpr std::size_t line = 64;

}  // namespace

void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to == from) return;
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to) % line;
  const std::size_t head = std::min(bytes, misaligned == 0 ? 0 : line - misaligned);
  copy_bytes(to, from, head);
  std::size_t at = head;
  for (; at + line <= bytes; at += line) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  copy_bytes(to + at, from + at, bytes - at);
}

void finish_streaming() { _mm_sfence(); }

#else

void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) { copy_bytes(to, from, bytes); }

void finish_streaming() {}

#endif

}  // namespace shim
