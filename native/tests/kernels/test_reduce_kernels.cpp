// The reductions against scalar arithmetic, and the 16-bit floats against every value they have.
#include "collectives/reduce_kernels.hpp"

#include <cfenv>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>

#include "tensors/half_floats.hpp"
#include "tests/check.hpp"

using namespace shim;

namespace {

// What float16 bits mean, from the definition of the format.
double meaning_of_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : HUGE_VAL;
  return bits & 0x8000 ? -magnitude : magnitude;
}

// The finite float16 next to `value`, ties to even, found by looking at all of them near the guess.
std::uint16_t nearest_half(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude >= 65520) return sign | 0x7c00;
  int low = 0;
  int high = 0x7bff;
  while (low < high) {  // the largest float16 that is not above
    const int middle = (low + high + 1) / 2;
    if (meaning_of_half(static_cast<std::uint16_t>(middle)) <= magnitude)
      low = middle;
    else
      high = middle - 1;
  }
  const double below = magnitude - meaning_of_half(static_cast<std::uint16_t>(low));
  const double above = (low == 0x7bff ? 65536.0 : meaning_of_half(static_cast<std::uint16_t>(low + 1))) - magnitude;
  const bool up = above < below || (above == below && low % 2 == 1);
  return static_cast<std::uint16_t>(sign | (low + (up ? 1 : 0)));
}

template <class T>
void check_op(Dtype dtype, ReduceOp op, const std::function<T(T, T)>& reference) {
  constexpr std::size_t count = 4500;  // more than a block of bytes
  std::mt19937_64 random(7);
  std::vector<std::vector<T>> inputs(5, std::vector<T>(count));
  for (auto& input : inputs)
    for (T& x : input) {
      if constexpr (std::is_integral_v<T>)
        x = static_cast<T>(random());
      else
        x = static_cast<T>(std::normal_distribution<double>()(random));
    }
  inputs[2][3] = inputs[1][3];
  std::vector<const std::byte*> sources;
  for (auto& input : inputs) sources.push_back(reinterpret_cast<const std::byte*>(input.data()));
  std::vector<T> expected = inputs[0];
  for (std::size_t rank = 1; rank < inputs.size(); ++rank)
    for (std::size_t i = 0; i < count; ++i) expected[i] = reference(expected[i], inputs[rank][i]);
  fastest_kernel(dtype, op)(reinterpret_cast<std::byte*>(inputs[1].data()), nullptr, sources.data(), sources.size(),
                            nullptr,
                            count);  // in place of one input
  for (std::size_t i = 0; i < count; ++i) CHECK_EQUAL(+inputs[1][i], +expected[i]);
}

template <class T>
void check_numbers(Dtype dtype) {
  using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
  check_op<T>(dtype, ReduceOp::sum,
              [](T a, T b) { return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b)); });
  check_op<T>(dtype, ReduceOp::product,
              [](T a, T b) { return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b)); });
  check_op<T>(dtype, ReduceOp::min, [](T a, T b) { return std::min(a, b); });
  check_op<T>(dtype, ReduceOp::max, [](T a, T b) { return std::max(a, b); });
  if constexpr (std::is_integral_v<T>) {
    check_op<T>(dtype, ReduceOp::band, [](T a, T b) { return static_cast<T>(a & b); });
    check_op<T>(dtype, ReduceOp::bor, [](T a, T b) { return static_cast<T>(a | b); });
    check_op<T>(dtype, ReduceOp::bxor, [](T a, T b) { return static_cast<T>(a ^ b); });
  }
}

template <class T>
T combined(Dtype dtype, ReduceOp op, const std::vector<T>& inputs, const std::vector<double>& factors = {}) {
  std::vector<const std::byte*> sources;
  for (const T& input : inputs) sources.push_back(reinterpret_cast<const std::byte*>(&input));
  T output{};
  fastest_kernel(dtype, op)(reinterpret_cast<std::byte*>(&output), nullptr, sources.data(), sources.size(),
                            factors.data(), 1);
  return output;
}

}  // namespace

SHIM_TEST(every_float16_is_read_and_written) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    const double meaning = meaning_of_half(half.bits);
    const float seen = to_float(half);
    if (std::isnan(meaning)) {
      CHECK(std::isnan(seen));
      CHECK(std::isnan(to_float(to_float16(seen))));
      continue;
    }
    CHECK_EQUAL(static_cast<double>(seen), meaning);
    CHECK_EQUAL(std::signbit(seen), (bits & 0x8000) != 0);
    CHECK_EQUAL(to_float16(seen).bits, half.bits);
  }
}

SHIM_TEST(floats_are_rounded_to_the_nearest_float16) {
  std::mt19937 random(1);
  std::vector<float> floats = {0.0f,          -0.0f,         65519.0f,
                               65519.99f,     65520.0f,      1e30f,
                               5.9604645e-8f, 2.9802322e-8f, 2.98023224e-8f * 1.0001f,
                               6.1035156e-5f, 6.097555e-5f,  2049.0f,
                               2051.0f,       -HUGE_VALF};
  for (int i = 0; i < 300'000; ++i) {
    const std::uint32_t exponent = 96 + random() % 50;  // from far below the subnormals to far above the largest
    floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random() & 0x807fffff) | exponent << 23));
  }
  for (std::uint16_t half = 0; half < 0x7bff; ++half)  // every tie
    floats.push_back(
        static_cast<float>((meaning_of_half(half) + meaning_of_half(static_cast<std::uint16_t>(half + 1))) / 2));
  for (const float value : floats) CHECK_EQUAL(to_float16(value).bits, nearest_half(value));
}

SHIM_TEST(bfloat16_is_the_upper_half_of_float32) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const BFloat16 value{static_cast<std::uint16_t>(bits)};
    const float seen = to_float(value);
    CHECK_EQUAL(std::bit_cast<std::uint32_t>(seen), bits << 16);
    if (!std::isnan(seen)) CHECK_EQUAL(to_bfloat16(seen).bits, value.bits);
    if (std::isnan(seen)) CHECK(std::isnan(to_float(to_bfloat16(seen))));
  }
  CHECK_EQUAL(to_bfloat16(std::bit_cast<float>(0x3f808000u)).bits, 0x3f80);  // a tie goes to the even one
  CHECK_EQUAL(to_bfloat16(std::bit_cast<float>(0x3f818000u)).bits, 0x3f82);
  CHECK_EQUAL(to_bfloat16(std::bit_cast<float>(0x3f808001u)).bits, 0x3f81);
  CHECK_EQUAL(to_bfloat16(std::bit_cast<float>(0x7f7fffffu)).bits, 0x7f80);
}

SHIM_TEST(integers_and_floats_agree_with_scalar_arithmetic) {
  check_numbers<std::uint8_t>(Dtype::uint8);
  check_numbers<std::int8_t>(Dtype::int8);
  check_numbers<std::uint16_t>(Dtype::uint16);
  check_numbers<std::int16_t>(Dtype::int16);
  check_numbers<std::uint32_t>(Dtype::uint32);
  check_numbers<std::int32_t>(Dtype::int32);
  check_numbers<std::uint64_t>(Dtype::uint64);
  check_numbers<std::int64_t>(Dtype::int64);
  check_numbers<float>(Dtype::float32);
  check_numbers<double>(Dtype::float64);
}

SHIM_TEST(half_floats_are_accumulated_in_float32_and_rounded_once) {
  // 2048 + 1 + 1 is 2050 in float32; rounding after each step would lose both ones.
  const auto half = [](float value) { return to_float16(value).bits; };
  CHECK_EQUAL(combined<std::uint16_t>(Dtype::float16, ReduceOp::sum, {half(2048), half(1), half(1)}), half(2050));
  const auto bfloat = [](float value) { return to_bfloat16(value).bits; };
  CHECK_EQUAL(combined<std::uint16_t>(Dtype::bfloat16, ReduceOp::sum, {bfloat(256), bfloat(1), bfloat(1)}),
              bfloat(258));
  CHECK_EQUAL(combined<std::uint16_t>(Dtype::float16, ReduceOp::avg, {half(65504), half(65504)}), half(65504));
  CHECK_EQUAL(combined<std::uint16_t>(Dtype::float16, ReduceOp::premul_sum, {half(2), half(3)}, {0.5, 2}), half(7));
}

SHIM_TEST(bool_is_logical_whatever_its_byte) {
  using Bytes = std::vector<std::uint8_t>;
  CHECK_EQUAL(+combined<std::uint8_t>(Dtype::boolean, ReduceOp::sum, Bytes{2, 4}), 1);
  CHECK_EQUAL(+combined<std::uint8_t>(Dtype::boolean, ReduceOp::product, Bytes{2, 4}), 1);
  CHECK_EQUAL(+combined<std::uint8_t>(Dtype::boolean, ReduceOp::bxor, Bytes{2, 4}), 0);
  CHECK_EQUAL(+combined<std::uint8_t>(Dtype::boolean, ReduceOp::min, Bytes{1, 0, 1}), 0);
  CHECK_EQUAL(+combined<std::uint8_t>(Dtype::boolean, ReduceOp::max, Bytes{0, 0, 1}), 1);
}

SHIM_TEST(a_nan_wins_and_complex_numbers_multiply) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max})
    for (std::size_t at = 0; at < 3; ++at) {
      std::vector<float> inputs = {1, 2, 3};
      inputs[at] = nan;
      CHECK(std::isnan(combined<float>(Dtype::float32, op, inputs)));
    }
  using Complex = std::complex<double>;
  const Complex product = combined<Complex>(Dtype::complex128, ReduceOp::product, {{1, 2}, {3, -1}, {0, 1}});
  CHECK_EQUAL(product, (Complex{-5, 5}));
  CHECK_EQUAL((combined<Complex>(Dtype::complex128, ReduceOp::avg, {{1, 2}, {3, -1}})), (Complex{2, 0.5}));
}

SHIM_TEST(ops_are_defined_where_they_mean_something) {
  CHECK(is_defined(ReduceOp::sum, Dtype::boolean));
  CHECK(!is_defined(ReduceOp::avg, Dtype::int32));
  CHECK(!is_defined(ReduceOp::max, Dtype::complex64));
  CHECK(!is_defined(ReduceOp::band, Dtype::float32));
  CHECK(!is_defined(ReduceOp::sum, Dtype::float8_e5m2));
}

namespace {

// Random bits, among which are NaNs, infinities and subnormals of every format.
std::vector<std::byte> random_bytes(std::mt19937_64& random, std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random() % 4 == 0 ? 0xff * (random() % 2) : random());
  return made;
}

// Which bits a NaN has, when several went in, is the processor's choice.
template <class T>
bool is_same_number(const std::byte* a, const std::byte* b) {
  T x;
  T y;
  std::memcpy(&x, a, sizeof(T));
  std::memcpy(&y, b, sizeof(T));
  if constexpr (std::is_floating_point_v<T>)
    return std::memcmp(&x, &y, sizeof(T)) == 0 || (std::isnan(x) && std::isnan(y));
  else
    return x.bits == y.bits || (std::isnan(to_float(x)) && std::isnan(to_float(y)));
}

bool is_same(Dtype dtype, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  const auto all = [&](auto same, std::size_t bytes) {
    for (std::size_t at = 0; at < a.size(); at += bytes)
      if (!same(a.data() + at, b.data() + at)) return false;
    return true;
  };
  if (dtype == Dtype::float16 || dtype == Dtype::complex32) return all(is_same_number<Float16>, 2);
  if (dtype == Dtype::bfloat16) return all(is_same_number<BFloat16>, 2);
  if (dtype == Dtype::float32 || dtype == Dtype::complex64) return all(is_same_number<float>, 4);
  if (dtype == Dtype::float64 || dtype == Dtype::complex128) return all(is_same_number<double>, 8);
  return a == b;
}

}  // namespace

SHIM_TEST(all_instruction_sets_give_the_same_bits) {
  CHECK(std::string_view(usable_kernels().back().name) == "portable");
  std::mt19937_64 random(11);
  for (std::size_t number = 0;
       number < static_cast<std::size_t>(Dtype::count_) * static_cast<std::size_t>(ReduceOp::count_); ++number) {
    const auto dtype = static_cast<Dtype>(number / static_cast<std::size_t>(ReduceOp::count_));
    const auto op = static_cast<ReduceOp>(number % static_cast<std::size_t>(ReduceOp::count_));
    for (const KernelSet& set : usable_kernels())
      CHECK_EQUAL(set.kernel_for(dtype, op) != nullptr, is_defined(op, dtype));
    if (!is_defined(op, dtype)) continue;
    for (const std::size_t ranks : {1, 2, 3, 4, 7})
      for (const std::size_t count : {1, 15, 16, 511, 512, 1157}) {
        const std::size_t bytes = count * bytes_of(dtype);
        std::vector<std::vector<std::byte>> inputs;
        std::vector<const std::byte*> sources;
        std::vector<double> factors;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          inputs.push_back(random_bytes(random, bytes + 1));
          factors.push_back(0.3 + static_cast<double>(rank));
        }
        for (const auto& input : inputs) sources.push_back(input.data() + 1);  // not aligned
        std::vector<std::byte> expected(bytes);
        usable_kernels().back().kernel_for(dtype, op)(expected.data(), nullptr, sources.data(), ranks, factors.data(),
                                                      count);
        for (const KernelSet& set : usable_kernels()) {
          std::vector<std::byte> seen(bytes);
          std::vector<std::byte> copy(bytes);
          set.kernel_for(dtype, op)(seen.data(), copy.data(), sources.data(), ranks, factors.data(), count);
          CHECK(is_same(dtype, seen, expected));
          CHECK(seen == copy);
        }
      }
  }
}

SHIM_TEST(every_16_bit_float_is_converted_alike_by_all_instruction_sets) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  const std::byte* inputs[] = {reinterpret_cast<const std::byte*>(all.data())};
  for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16})
    for (const double factor : {1.0, 0.37, 1e-4, 3e4}) {  // towards subnormals, and towards infinity
      std::vector<std::byte> expected(2 * all.size());
      const Kernel portable = usable_kernels().back().kernel_for(dtype, ReduceOp::premul_sum);
      portable(expected.data(), nullptr, inputs, 1, &factor, all.size());
      for (const KernelSet& set : usable_kernels()) {
        std::vector<std::byte> seen(expected.size());
        set.kernel_for(dtype, ReduceOp::premul_sum)(seen.data(), nullptr, inputs, 1, &factor, all.size());
        CHECK(is_same(dtype, seen, expected));
      }
    }
}
