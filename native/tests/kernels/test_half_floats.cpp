// float16: every value gives the same bits wherever it lies in a piece, on every processor, whatever the caller has
// set.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "collectives/reduce_kernels.hpp"
#include "tensors/half_floats.hpp"
#include "tests/check.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace shim;
using namespace shim::tests;

namespace {

constexpr std::size_t all_values = 65'536;

// Has the processor flush subnormal floats to zero, as deep-learning code likes to.
class Flushing {
 public:
#if defined(__x86_64__)
  explicit Flushing(bool is_on) : before_(_mm_getcsr()) {
    if (is_on) _mm_setcsr(before_ | 0x8040);  // FTZ and DAZ
  }
  ~Flushing() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  explicit Flushing(bool is_on) {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    if (is_on) asm volatile("msr fpcr, %0" : : "r"(before_ | 1 << 24));  // FZ
  }
  ~Flushing() { asm volatile("msr fpcr, %0" : : "r"(before_)); }

 private:
  std::uint64_t before_ = 0;
#else
  explicit Flushing(bool) {}
#endif
};

std::vector<std::uint16_t> combined(const KernelSet& set, ReduceOp op, const std::vector<const std::uint16_t*>& inputs,
                                    std::size_t count, Dtype dtype = Dtype::float16) {
  std::vector<std::uint16_t> output(count);
  std::vector<const std::byte*> from;
  for (const std::uint16_t* input : inputs) from.push_back(reinterpret_cast<const std::byte*>(input));
  const std::vector<double> factors(inputs.size(), 1.0);
  set.kernel_for(dtype, op)(reinterpret_cast<std::byte*>(output.data()), nullptr, from.data(), from.size(),
                            factors.data(), count);
  return output;
}

double value_of(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 0x3ff;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_nan(std::uint16_t bits) { return (bits & 0x7fff) > 0x7c00; }

}  // namespace

SHIM_TEST(every_float16_becomes_its_float_even_where_subnormals_are_flushed) {
  for (const bool flushed : {false, true})
    for (std::size_t i = 0; i < all_values; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      float wide = 0;
      std::uint16_t back = 0;
      {
        const Flushing flushing(flushed);
        wide = to_float(Float16{bits});
        back = to_float16(wide).bits;
      }
      CHECK_EQUAL(back, is_nan(bits) ? bits | 0x200 : bits);
      if ((bits & 0x7c00) != 0x7c00) CHECK_EQUAL(static_cast<double>(wide), value_of(bits));
    }
}

SHIM_TEST(float16_pieces_have_the_same_bits_at_every_place) {
  std::vector<std::uint16_t> values(all_values);
  for (std::size_t i = 0; i < all_values; ++i) values[i] = static_cast<std::uint16_t>(i);
  std::shuffle(values.begin(), values.end(), std::mt19937(7));
  const std::vector<std::uint16_t> zeros(all_values, 0x8000);  // negative: added to anything they leave it as it is
  for (const KernelSet& set : usable_kernels())
    for (const bool flushed : {false, true})
      for (const std::size_t ranks : {1, 2})
        for (std::size_t offset = 0; offset < 17; ++offset)
          for (std::size_t count : {all_values - 17, std::size_t{7}}) {
            std::vector<const std::uint16_t*> inputs = {values.data() + offset};
            if (ranks == 2) inputs.push_back(zeros.data());
            std::vector<std::uint16_t> seen;
            {
              const Flushing flushing(flushed);
              seen = combined(set, ReduceOp::sum, inputs, count);
            }
            for (std::size_t i = 0; i < count; ++i) {
              const std::uint16_t value = values[offset + i];
              if (seen[i] != (is_nan(value) ? value | 0x200 : value))
                CHECK_EQUAL(std::string(set.name) + " " + std::to_string(value), std::to_string(seen[i]));
            }
          }
}

SHIM_TEST(the_smaller_of_two_equal_bfloat16_is_that_one) {
  std::vector<std::uint16_t> values(all_values);
  for (std::size_t i = 0; i < all_values; ++i) values[i] = static_cast<std::uint16_t>(i);
  for (const KernelSet& set : usable_kernels())
    for (const bool flushed : {false, true}) {
      std::vector<std::uint16_t> seen;
      {
        const Flushing flushing(flushed);
        seen = combined(set, ReduceOp::min, {values.data(), values.data()}, all_values, Dtype::bfloat16);
      }
      for (const std::uint16_t value : values) {
        const std::uint16_t expected = (value & 0x7fff) > 0x7f80 ? value | 0x40 : value;
        if (seen[value] != expected) CHECK_EQUAL(std::string(set.name) + " " + std::to_string(value), "");
      }
    }
}

SHIM_TEST(float16_sums_of_any_length_have_the_same_bits_as_in_long_pieces) {
  std::mt19937 random(3);
  std::vector<std::uint16_t> first(4096), second(4096);
  for (auto* values : {&first, &second})
    for (std::uint16_t& value : *values) do
        value = static_cast<std::uint16_t>(random());
      while ((value & 0x7c00) == 0x7c00);
  for (const bool flushed : {false, true}) {
    const Flushing flushing(flushed);
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::premul_sum}) {
      const auto whole = combined(usable_kernels().back(), op, {first.data(), second.data()}, first.size());
      for (const KernelSet& set : usable_kernels())
        for (std::size_t length = 1; length < 40; ++length)
          for (std::size_t start = 0; start + length <= first.size(); start += length) {
            const auto piece = combined(set, op, {first.data() + start, second.data() + start}, length);
            CHECK(std::equal(piece.begin(), piece.end(), whole.begin() + static_cast<std::ptrdiff_t>(start)));
          }
    }
  }
}
