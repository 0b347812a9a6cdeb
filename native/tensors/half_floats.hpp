// Conversion between float32 and the two 16-bit formats, in plain integer arithmetic that compilers vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace shim {

struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

[[gnu::always_inline]] inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

[[gnu::always_inline]] inline BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;  // to nearest, ties to even
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  return {static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40 : rounded)};
}

[[gnu::always_inline]] inline float to_float(Float16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fff;
  // Subnormals become normal. They are made of integers, because as floats some callers have them flushed to zero.
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f;
  std::uint32_t bits = (magnitude << 13) + (112u << 23);
  if (magnitude < 0x400) bits = std::bit_cast<std::uint32_t>(subnormal);
  if (magnitude >= 0x7c00) bits = (magnitude << 13) | 0x7f800000;  // infinity and NaN,
  if (magnitude > 0x7c00) bits |= 0x400000;                        // which is quiet, as processors make it
  return std::bit_cast<float>(sign | bits);
}

[[gnu::always_inline]] inline Float16 to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  // Normal results: shift the exponent's bias and round the 13 bits that go, to nearest, ties to even.
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Subnormal results: adding a half makes the processor round at the right place.
  const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(aligned) - 0x3f000000;
  std::uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
  if (magnitude >= 0x477ff000) result = 0x7c00;                               // too large: infinity
  if (magnitude > 0x7f800000) result = 0x7e00 | ((magnitude >> 13) & 0x3ff);  // NaN
  return {static_cast<std::uint16_t>(sign | result)};
}

}  // namespace shim
