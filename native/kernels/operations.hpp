// The binary operations of the reductions, on elements as they are accumulated.
//
// For kernels/combine.hpp alone, as formats.hpp. Everything in the two is inlined or has internal linkage: a function
// compiled for one instruction set must not be the one that the linker keeps for all.
#pragma once

#include <cstdint>
#include <type_traits>

namespace shim::SHIM_INSTRUCTIONS {
namespace {

// Integers, which are unsigned here, wrap around, as signed ones do in the frameworks. Narrow ones are computed in 32
// bits: they would be promoted to signed ones, whose overflow is undefined.
template <class T, class Compute>
[[gnu::always_inline]] inline T wrapping(T a, T b, const Compute& compute) {
  using Computed = std::conditional_t<std::is_unsigned_v<T> && (sizeof(T) < 4), std::uint32_t, T>;
  return static_cast<T>(compute(static_cast<Computed>(a), static_cast<Computed>(b)));
}

struct Sum {
  template <class T>
  [[gnu::always_inline]] T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Product {
  template <class T>
  [[gnu::always_inline]] T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};
// A NaN on any rank wins.
struct Min {
  template <class T>
  [[gnu::always_inline]] T operator()(T a, T b) const {
    return b < a || b != b ? b : a;
  }
};
struct Max {
  template <class T>
  [[gnu::always_inline]] T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
};
struct And {
  template <class T>
  [[gnu::always_inline]] T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  [[gnu::always_inline]] T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  [[gnu::always_inline]] T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

}  // namespace
}  // namespace shim::SHIM_INSTRUCTIONS
