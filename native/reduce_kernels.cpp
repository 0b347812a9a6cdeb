#include "reduce_kernels.hpp"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "half_floats.hpp"

namespace shim {
namespace {

constexpr std::size_t block = 512;  // elements accumulated at a time; stays in the L1 cache

struct Bool {
  std::uint8_t byte;
};

template <class T>
concept Half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
concept Integer = std::is_integral_v<T>;

// How elements of a type are accumulated.
template <class T>
struct Accumulator {
  using type = T;
  static T widen(T value) { return value; }
  static T narrow(T value) { return value; }
};
template <Half T>
struct Accumulator<T> {
  using type = float;
  static float widen(T value) { return to_float(value); }
  static T narrow(float value) {
    if constexpr (std::is_same_v<T, Float16>)
      return to_float16(value);
    else
      return to_bfloat16(value);
  }
};
template <>
struct Accumulator<Bool> {
  using type = std::uint8_t;
  static std::uint8_t widen(Bool value) { return value.byte != 0 ? 1 : 0; }
  static Bool narrow(std::uint8_t value) { return {value}; }
};

// Signed overflow wraps around, as in the frameworks.
template <class T, class Compute>
T wrapping(T a, T b, const Compute& compute) {
  if constexpr (Integer<T>) {
    // At least 32 bits wide, for narrower unsigned types are promoted to signed ones.
    using Wide = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
    return static_cast<T>(compute(static_cast<Wide>(a), static_cast<Wide>(b)));
  } else {
    return compute(a, b);
  }
}

template <class T>
std::complex<T> multiplied(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
template <class T>
T multiplied(T a, T b) {
  return wrapping(a, b, [](auto x, auto y) { return x * y; });
}

struct Sum {
  template <class T>
  T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Product {
  template <class T>
  T operator()(T a, T b) const {
    return multiplied(a, b);
  }
};
// A NaN on any rank wins.
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return b < a || b != b ? b : a;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
};
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

template <class T>
T element(const std::byte* from, std::size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

template <class A>
A scaled(A value, double factor) {
  if constexpr (std::is_floating_point_v<A>)
    return value * static_cast<A>(factor);
  else
    return {value.real() * static_cast<typename A::value_type>(factor),
            value.imag() * static_cast<typename A::value_type>(factor)};
}

template <class A>
A divided(A value, std::size_t by) {
  if constexpr (std::is_floating_point_v<A>)
    return value / static_cast<A>(by);
  else
    return {value.real() / static_cast<typename A::value_type>(by),
            value.imag() / static_cast<typename A::value_type>(by)};
}

enum class Finish { plain, averaged, premultiplied };

template <class T, class Combine, Finish finish>
void combine_as(std::byte* output, const std::vector<const std::byte*>& inputs, const std::vector<double>& factors,
                std::size_t count) {
  using Acc = typename Accumulator<T>::type;
  const auto load = [&](std::size_t input, std::size_t i) {
    const Acc value = Accumulator<T>::widen(element<T>(inputs[input], i));
    if constexpr (finish == Finish::premultiplied) return scaled(value, factors[input]);
    return value;
  };
  Acc total[block];
  for (std::size_t start = 0; start < count; start += block) {
    const std::size_t n = std::min(block, count - start);
    for (std::size_t i = 0; i < n; ++i) total[i] = load(0, start + i);
    for (std::size_t input = 1; input < inputs.size(); ++input)
      for (std::size_t i = 0; i < n; ++i) total[i] = Combine()(total[i], load(input, start + i));
    for (std::size_t i = 0; i < n; ++i) {
      if constexpr (finish == Finish::averaged) total[i] = divided(total[i], inputs.size());
      const T value = Accumulator<T>::narrow(total[i]);
      std::memcpy(output + (start + i) * sizeof(T), &value, sizeof(T));
    }
  }
}

using Kernel = void (*)(std::byte*, const std::vector<const std::byte*>&, const std::vector<double>&, std::size_t);

template <class T>
constexpr bool is_complex_type = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <class T>
constexpr bool is_float_type = Half<T> || std::is_floating_point_v<T>;

// The kernel for an op that is_defined for T.
template <class T>
Kernel kernel_of(ReduceOp op) {
  if constexpr (std::is_same_v<T, Bool>) {
    switch (op) {
      case ReduceOp::sum:
      case ReduceOp::max:
      case ReduceOp::bor:
        return combine_as<T, Or, Finish::plain>;
      case ReduceOp::bxor:
        return combine_as<T, Xor, Finish::plain>;
      default:
        return combine_as<T, And, Finish::plain>;
    }
  } else {
    if (op == ReduceOp::sum) return combine_as<T, Sum, Finish::plain>;
    if (op == ReduceOp::product) return combine_as<T, Product, Finish::plain>;
    if constexpr (is_float_type<T> || is_complex_type<T>) {
      if (op == ReduceOp::avg) return combine_as<T, Sum, Finish::averaged>;
      if (op == ReduceOp::premul_sum) return combine_as<T, Sum, Finish::premultiplied>;
    }
    if constexpr (!is_complex_type<T>) {
      if (op == ReduceOp::min) return combine_as<T, Min, Finish::plain>;
      if (op == ReduceOp::max) return combine_as<T, Max, Finish::plain>;
    }
    if constexpr (Integer<T>) {
      if (op == ReduceOp::band) return combine_as<T, And, Finish::plain>;
      if (op == ReduceOp::bor) return combine_as<T, Or, Finish::plain>;
      if (op == ReduceOp::bxor) return combine_as<T, Xor, Finish::plain>;
    }
    return nullptr;
  }
}

Kernel kernel_for(Dtype dtype, ReduceOp op) {
  switch (dtype) {
    case Dtype::boolean:
      return kernel_of<Bool>(op);
    case Dtype::uint8:
      return kernel_of<std::uint8_t>(op);
    case Dtype::int8:
      return kernel_of<std::int8_t>(op);
    case Dtype::uint16:
      return kernel_of<std::uint16_t>(op);
    case Dtype::int16:
      return kernel_of<std::int16_t>(op);
    case Dtype::uint32:
      return kernel_of<std::uint32_t>(op);
    case Dtype::int32:
      return kernel_of<std::int32_t>(op);
    case Dtype::uint64:
      return kernel_of<std::uint64_t>(op);
    case Dtype::int64:
      return kernel_of<std::int64_t>(op);
    case Dtype::float16:
      return kernel_of<Float16>(op);
    case Dtype::bfloat16:
      return kernel_of<BFloat16>(op);
    case Dtype::float32:
      return kernel_of<float>(op);
    case Dtype::float64:
      return kernel_of<double>(op);
    case Dtype::complex64:
      return kernel_of<std::complex<float>>(op);
    case Dtype::complex128:
      return kernel_of<std::complex<double>>(op);
    default:
      return nullptr;
  }
}

}  // namespace

void combine(Dtype dtype, ReduceOp op, std::byte* output, const std::vector<const std::byte*>& inputs,
             const std::vector<double>& factors, std::size_t count) {
  const Kernel kernel = kernel_for(dtype, op);
  if (kernel != nullptr && count > 0) kernel(output, inputs, factors, count);
}

}  // namespace shim
