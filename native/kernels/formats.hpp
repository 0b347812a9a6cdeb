// How elements in memory become elements that are accumulated, block by block, and back.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "tensors/half_floats.hpp"

namespace shim::SHIM_INSTRUCTIONS {
namespace {

template <class Wide>
constexpr std::size_t elements_of_block = 4096 / sizeof(Wide);  // of an accumulator of 4 KB

struct Bool {
  std::uint8_t byte;
};

template <class T>
[[gnu::always_inline]] inline T element(const std::byte* from, std::size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
[[gnu::always_inline]] inline void set_element(std::byte* to, std::size_t index, T value) {
  std::memcpy(to + index * sizeof(T), &value, sizeof(T));
}

// For a block of at most `block` elements: each() calls use(place, element) for every element, with its place in the
// accumulator, each_pair() use(place, a, b) for those of two inputs, and write() puts finish(total[place]) back, of
// which finish may get several in a vector. The places are the same for all inputs, in any order.
template <class T>
struct Format {
  using Wide = T;
  static constexpr std::size_t block = elements_of_block<Wide>;

  template <class Use>
  [[gnu::always_inline]] static void each(const std::byte* from, std::size_t count, const Use& use) {
    for (std::size_t i = 0; i < count; ++i) use(i, element<T>(from, i));
  }
  template <class Use>
  [[gnu::always_inline]] static void each_pair(const std::byte* a, const std::byte* b, std::size_t count,
                                               const Use& use) {
    for (std::size_t i = 0; i < count; ++i) use(i, element<T>(a, i), element<T>(b, i));
  }
  template <class Finish>
  [[gnu::always_inline]] static void write(std::byte* to, std::size_t count, const Wide* total, const Finish& finish) {
    for (std::size_t i = 0; i < count; ++i) set_element(to, i, finish(total[i]));
  }
};

template <>
struct Format<Bool> {
  using Wide = std::uint8_t;
  static constexpr std::size_t block = elements_of_block<Wide>;

  template <class Use>
  [[gnu::always_inline]] static void each(const std::byte* from, std::size_t count, const Use& use) {
    for (std::size_t i = 0; i < count; ++i) use(i, truth(from, i));
  }
  template <class Use>
  [[gnu::always_inline]] static void each_pair(const std::byte* a, const std::byte* b, std::size_t count,
                                               const Use& use) {
    for (std::size_t i = 0; i < count; ++i) use(i, truth(a, i), truth(b, i));
  }
  [[gnu::always_inline]] static Wide truth(const std::byte* from, std::size_t index) {
    return element<std::uint8_t>(from, index) != 0 ? 1 : 0;
  }
  template <class Finish>
  [[gnu::always_inline]] static void write(std::byte* to, std::size_t count, const Wide* total, const Finish& finish) {
    for (std::size_t i = 0; i < count; ++i) set_element(to, i, finish(total[i]));
  }
};

// Two elements are read and written as one word: the lower half of the accumulator has the even ones, the upper half
// the odd ones, and no element has to change its place in a register.
template <>
struct Format<BFloat16> {
  using Wide = float;
  static constexpr std::size_t block = elements_of_block<Wide>;
  static constexpr std::size_t odd = block / 2;
  static_assert(std::endian::native == std::endian::little);

  template <class Use>
  [[gnu::always_inline]] static void each(const std::byte* from, std::size_t count, const Use& use) {
    for (std::size_t i = 0; i < count / 2; ++i) {
      const auto pair = element<std::uint32_t>(from, i);
      use(i, std::bit_cast<float>(pair << 16));
      use(odd + i, std::bit_cast<float>(pair & 0xffff0000u));
    }
    if (count % 2 != 0) use(count / 2, to_float(element<BFloat16>(from, count - 1)));
  }
  template <class Use>
  [[gnu::always_inline]] static void each_pair(const std::byte* a, const std::byte* b, std::size_t count,
                                               const Use& use) {
    for (std::size_t i = 0; i < count / 2; ++i) {
      const auto x = element<std::uint32_t>(a, i);
      const auto y = element<std::uint32_t>(b, i);
      use(i, std::bit_cast<float>(x << 16), std::bit_cast<float>(y << 16));
      use(odd + i, std::bit_cast<float>(x & 0xffff0000u), std::bit_cast<float>(y & 0xffff0000u));
    }
    if (count % 2 != 0)
      use(count / 2, to_float(element<BFloat16>(a, count - 1)), to_float(element<BFloat16>(b, count - 1)));
  }
  template <class Finish>
  [[gnu::always_inline]] static void write(std::byte* to, std::size_t count, const Wide* total, const Finish& finish) {
    std::size_t written = 0;
#if defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
    written = convert(to, count / 2, total, finish);
#endif
    for (std::size_t i = written; i < count / 2; ++i) {
      const std::uint32_t low = to_bfloat16(finish(total[i])).bits;
      const std::uint32_t high = to_bfloat16(finish(total[odd + i])).bits;
      set_element(to, i, low | high << 16);
    }
    if (count % 2 != 0) set_element(to, count - 1, to_bfloat16(finish(total[count / 2])));
  }

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
 private:
  // Has the processor convert the first of `pairs`, 4 at a time, and returns how many. It rounds as to_bfloat16() does
  // unless it is told to take subnormals for zeros: then none count.
  template <class Finish>
  [[gnu::always_inline]] static std::size_t convert(std::byte* to, std::size_t pairs, const float* total,
                                                    const Finish& finish) {
    constexpr std::uint64_t flush_to_zero = 1 << 24;
    std::uint64_t control = 0;
    asm("mrs %0, fpcr" : "=r"(control));
    if ((control & flush_to_zero) != 0) return 0;
    const auto halves_of = [&](const float* from) {
      return vreinterpret_u16_bf16(vcvt_bf16_f32(finish(vld1q_f32(from))));
    };
    std::size_t written = 0;
    for (; written + 4 <= pairs; written += 4) {
      const uint16x4x2_t words{{ halves_of(total + written), halves_of(total + odd + written) }};
      vst2_u16(reinterpret_cast<std::uint16_t*>(to + written * 4), words);
    }
    return written;
  }
#elif defined(__AVX512BF16__)
 private:
  // Has the processor convert the first of `pairs`, 16 at a time, and returns how many. It rounds as to_bfloat16() does
  // but for subnormals, which it takes for zeros: where there are any, none count.
  template <class Finish>
  [[gnu::always_inline]] static std::size_t convert(std::byte* to, std::size_t pairs, const float* total,
                                                    const Finish& finish) {
    alignas(64) std::uint16_t order[32];  // the instruction puts the even ones first
    for (std::size_t i = 0; i < 32; ++i) order[i] = static_cast<std::uint16_t>(i / 2 + i % 2 * 16);
    using Words [[gnu::vector_size(64)]] = std::uint32_t;
    Words smallest = ~Words{};
    const auto see = [&](__m512 values) {  // magnitudes less one, of which zeros have the largest
      const Words magnitudes = (std::bit_cast<Words>(values) & 0x7fffffff) - 1;
      smallest = magnitudes < smallest ? magnitudes : smallest;
    };
    std::size_t written = 0;
    for (; written + 16 <= pairs; written += 16) {
      const __m512 even = finish(_mm512_load_ps(total + written));
      const __m512 uneven = finish(_mm512_load_ps(total + odd + written));
      see(even);
      see(uneven);
      const auto halves = std::bit_cast<__m512i>(_mm512_cvtne2ps_pbh(uneven, even));
      _mm512_storeu_si512(to + written * 4, _mm512_permutexvar_epi16(_mm512_load_si512(order), halves));
    }
    for (std::size_t i = 0; i < 16; ++i)
      if (smallest[i] < 0x7fffff) return 0;
    return written;
  }
#endif
};

template <>
struct Format<Float16> {
  using Wide = float;
  static constexpr std::size_t block = elements_of_block<Wide>;

  template <class Use>
  [[gnu::always_inline]] static void each(const std::byte* from, std::size_t count, const Use& use) {
    float wide[block];
    widen(from, count, wide);
    for (std::size_t i = 0; i < count; ++i) use(i, wide[i]);
  }
  template <class Use>
  [[gnu::always_inline]] static void each_pair(const std::byte* a, const std::byte* b, std::size_t count,
                                               const Use& use) {
    float x[block];
    float y[block];
    widen(a, count, x);
    widen(b, count, y);
    for (std::size_t i = 0; i < count; ++i) use(i, x[i], y[i]);
  }
  template <class Finish>
  [[gnu::always_inline]] static void write(std::byte* to, std::size_t count, const Wide* total, const Finish& finish) {
#if defined(__F16C__)
    std::size_t converted = 0;
    for (; converted + 8 <= count; converted += 8) {
      auto* halves = reinterpret_cast<__m128i*>(to + converted * sizeof(Float16));
      _mm_storeu_si128(halves, _mm256_cvtps_ph(finish(_mm256_loadu_ps(total + converted)), _MM_FROUND_TO_NEAREST_INT));
    }
    for (; converted < count; ++converted)
      set_element<std::uint16_t>(to, converted, _cvtss_sh(finish(total[converted]), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__)
    for (std::size_t i = 0; i < count; ++i) set_element(to, i, static_cast<__fp16>(finish(total[i])));
#else
    for (std::size_t i = 0; i < count; ++i) set_element(to, i, to_float16(finish(total[i])));
#endif
  }

 private:
  [[gnu::always_inline]] static void widen(const std::byte* from, std::size_t count, float* wide) {
    std::size_t converted = 0;
#if defined(__F16C__)
    for (; converted + 8 <= count; converted += 8) {
      const auto* halves = reinterpret_cast<const __m128i*>(from + converted * sizeof(Float16));
      _mm256_storeu_ps(wide + converted, _mm256_cvtph_ps(_mm_loadu_si128(halves)));
    }
    for (; converted < count; ++converted) wide[converted] = _cvtsh_ss(element<std::uint16_t>(from, converted));
#elif defined(__aarch64__)
    for (; converted < count; ++converted) wide[converted] = element<__fp16>(from, converted);
#else
    for (; converted < count; ++converted) wide[converted] = to_float(element<Float16>(from, converted));
#endif
  }
};

}  // namespace
}  // namespace shim::SHIM_INSTRUCTIONS
