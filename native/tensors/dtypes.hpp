// The element types the engine knows, and the reduce ops. Their numbers are part of the shared-memory protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shim {

inline constexpr std::size_t max_dimensions = 16;  // of a tensor

enum class Dtype : std::uint8_t {
  none,
  boolean,
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  uint64,
  int64,
  float16,
  bfloat16,
  float32,
  float64,
  complex32,
  complex64,
  complex128,
  // Eight-bit floats are carried and compared, but no arithmetic is defined on them.
  float8_e3m4,
  float8_e4m3,
  float8_e4m3b11fnuz,
  float8_e4m3fn,
  float8_e4m3fnuz,
  float8_e5m2,
  float8_e5m2fnuz,
  float8_e8m0fnu,
  device_message,  // bytes that tell of a message whose elements are on a device
  count_,
};

struct DtypeFacts {
  std::string_view name;
  std::size_t bytes;
};

inline constexpr DtypeFacts dtype_facts[] = {
    {"none", 0},           {"bool", 1},
    {"uint8", 1},          {"int8", 1},
    {"uint16", 2},         {"int16", 2},
    {"uint32", 4},         {"int32", 4},
    {"uint64", 8},         {"int64", 8},
    {"float16", 2},        {"bfloat16", 2},
    {"float32", 4},        {"float64", 8},
    {"complex32", 4},      {"complex64", 8},
    {"complex128", 16},    {"float8_e3m4", 1},
    {"float8_e4m3", 1},    {"float8_e4m3b11fnuz", 1},
    {"float8_e4m3fn", 1},  {"float8_e4m3fnuz", 1},
    {"float8_e5m2", 1},    {"float8_e5m2fnuz", 1},
    {"float8_e8m0fnu", 1}, {"device message", 1},
};
static_assert(std::size(dtype_facts) == static_cast<std::size_t>(Dtype::count_));

constexpr std::string_view name_of(Dtype dtype) { return dtype_facts[static_cast<std::size_t>(dtype)].name; }
constexpr std::size_t bytes_of(Dtype dtype) { return dtype_facts[static_cast<std::size_t>(dtype)].bytes; }

// The dtype called `name`, or Dtype::none.
constexpr Dtype dtype_named(std::string_view name) {
  for (std::size_t i = 1; i < std::size(dtype_facts); ++i)
    if (dtype_facts[i].name == name) return static_cast<Dtype>(i);
  return Dtype::none;
}

// The integer, float or complex dtype of so many bytes, or Dtype::none.
constexpr Dtype signed_of(std::size_t bytes) {
  return bytes == 1   ? Dtype::int8
         : bytes == 2 ? Dtype::int16
         : bytes == 4 ? Dtype::int32
         : bytes == 8 ? Dtype::int64
                      : Dtype::none;
}
constexpr Dtype unsigned_of(std::size_t bytes) {
  return bytes == 1   ? Dtype::uint8
         : bytes == 2 ? Dtype::uint16
         : bytes == 4 ? Dtype::uint32
         : bytes == 8 ? Dtype::uint64
                      : Dtype::none;
}
constexpr Dtype float_of(std::size_t bytes) {
  return bytes == 2 ? Dtype::float16 : bytes == 4 ? Dtype::float32 : bytes == 8 ? Dtype::float64 : Dtype::none;
}
constexpr Dtype complex_of(std::size_t bytes) {
  return bytes == 4 ? Dtype::complex32 : bytes == 8 ? Dtype::complex64 : bytes == 16 ? Dtype::complex128 : Dtype::none;
}

constexpr bool is_complex(Dtype dtype) { return dtype >= Dtype::complex32 && dtype <= Dtype::complex128; }
constexpr bool is_float(Dtype dtype) { return dtype >= Dtype::float16 && dtype <= Dtype::float64; }
constexpr bool is_integer(Dtype dtype) { return dtype >= Dtype::uint8 && dtype <= Dtype::int64; }
constexpr bool is_float8(Dtype dtype) { return dtype >= Dtype::float8_e3m4 && dtype < Dtype::count_; }

enum class ReduceOp : std::uint8_t { sum, avg, product, min, max, band, bor, bxor, premul_sum, count_ };

inline constexpr std::string_view reduce_op_names[] = {"SUM",  "AVG", "PRODUCT", "MIN",       "MAX",
                                                       "BAND", "BOR", "BXOR",    "PREMUL_SUM"};
static_assert(std::size(reduce_op_names) == static_cast<std::size_t>(ReduceOp::count_));

constexpr std::string_view name_of(ReduceOp op) { return reduce_op_names[static_cast<std::size_t>(op)]; }

// Whether `op` is defined for elements of type `dtype`; see shim/core/reduce_ops.py for the rules in words.
constexpr bool is_defined(ReduceOp op, Dtype dtype) {
  if (is_float8(dtype) || dtype == Dtype::none) return false;
  switch (op) {
    case ReduceOp::sum:
      return true;
    case ReduceOp::product:
      return dtype != Dtype::complex32;  // torch alone has it, and does not multiply it
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
      return is_float(dtype) || is_complex(dtype);
    case ReduceOp::min:
    case ReduceOp::max:
      return !is_complex(dtype);
    default:
      return is_integer(dtype) || dtype == Dtype::boolean;
  }
}

}  // namespace shim
