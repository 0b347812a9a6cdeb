// The loops of the kernels, and the kernels of one dtype. Compiled for each instruction set, which SHIM_INSTRUCTIONS
// names.
//
// All inputs are combined block by block in an accumulator that stays in the L1 cache: each input is read once and the
// output written once, however many ranks there are; the first two at once, so that what comes from another processor
// and what comes from memory are waited for together. The loops are plain, for the compiler to vectorise.
#include "kernels/formats.hpp"
#include "kernels/kernels.hpp"
#include "kernels/operations.hpp"

namespace shim::SHIM_INSTRUCTIONS {
namespace {

enum class Finish { plain, averaged, premultiplied };

template <class T, class Combine, Finish finish>
void combine(std::byte* output, std::byte* copy, const std::byte* const* inputs, std::size_t ranks,
             const double* factors, std::size_t count) {
  using Wide = typename Format<T>::Wide;
  constexpr std::size_t block = Format<T>::block;
  alignas(64) Wide total[block];
  for (std::size_t start = 0; start < count; start += block) {
    const std::size_t length = count - start < block ? count - start : block;
    const auto input_of = [&](std::size_t rank) { return inputs[rank] + start * sizeof(T); };
    const auto scaling_of = [&](std::size_t rank) {
      if constexpr (finish == Finish::premultiplied)
        return [factor = static_cast<Wide>(factors[rank])](Wide value) { return static_cast<Wide>(value * factor); };
      else
        return [](Wide value) { return value; };
    };
    if (ranks == 1) {
      Format<T>::each(input_of(0), length,
                      [&, scaled = scaling_of(0)](std::size_t i, Wide value) { total[i] = scaled(value); });
    } else {
      Format<T>::each_pair(input_of(0), input_of(1), length,
                           [&, first = scaling_of(0), second = scaling_of(1)](std::size_t i, Wide a, Wide b) {
                             total[i] = Combine()(first(a), second(b));
                           });
    }
    for (std::size_t rank = 2; rank < ranks; ++rank)
      Format<T>::each(input_of(rank), length, [&, scaled = scaling_of(rank)](std::size_t i, Wide value) {
        total[i] = Combine()(total[i], scaled(value));
      });
    std::byte* to = output + start * sizeof(T);
    if constexpr (finish == Finish::averaged) {
      const auto by = static_cast<Wide>(ranks);
      const Wide inverse = 1 / by;
      if (std::has_single_bit(ranks))  // the product is the quotient, and faster
        Format<T>::write(to, length, total, [inverse](auto sum) { return sum * inverse; });
      else
        Format<T>::write(to, length, total, [by](auto sum) { return sum / by; });
    } else {
      Format<T>::write(to, length, total, [](auto value) { return value; });
    }
    if (copy != nullptr) std::memcpy(copy + start * sizeof(T), to, length * sizeof(T));
  }
}

// Two floats for each complex number: sums, averages and factors treat its parts alike.
template <class T, class Combine, Finish finish>
void combine_parts(std::byte* output, std::byte* copy, const std::byte* const* inputs, std::size_t ranks,
                   const double* factors, std::size_t count) {
  combine<T, Combine, finish>(output, copy, inputs, ranks, factors, 2 * count);
}

// The products of complex numbers. Their parts are kept apart: side by side, GCC 12 makes fused operations of them,
// which round differently, and does so although -ffp-contract=off forbids it.
template <class T>
void multiply_complex(std::byte* output, std::byte* copy, const std::byte* const* inputs, std::size_t ranks,
                      const double*, std::size_t count) {
  constexpr std::size_t block = elements_of_block<T>;
  T reals[block] = {};
  T imaginaries[block] = {};
  for (std::size_t start = 0; start < count; start += block) {
    const std::size_t length = count - start < block ? count - start : block;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::byte* input = inputs[rank] + 2 * start * sizeof(T);
      for (std::size_t i = 0; i < length; ++i) {
        const T real = element<T>(input, 2 * i);
        const T imaginary = element<T>(input, 2 * i + 1);
        const T a = reals[i];
        const T b = imaginaries[i];
        reals[i] = rank == 0 ? real : a * real - b * imaginary;
        imaginaries[i] = rank == 0 ? imaginary : a * imaginary + b * real;
      }
    }
    std::byte* to = output + 2 * start * sizeof(T);
    for (std::size_t i = 0; i < length; ++i) {
      set_element(to, 2 * i, reals[i]);
      set_element(to, 2 * i + 1, imaginaries[i]);
    }
    if (copy != nullptr) std::memcpy(copy + 2 * start * sizeof(T), to, 2 * length * sizeof(T));
  }
}

// Of integers and floats.
template <class T>
Kernel kernel_of(ReduceOp op) {
  if (op == ReduceOp::min) return combine<T, Min, Finish::plain>;
  if (op == ReduceOp::max) return combine<T, Max, Finish::plain>;
  if constexpr (std::is_integral_v<T>) {  // with a sign or without it, the bits of these are the same
    using Bits = std::make_unsigned_t<T>;
    if (op == ReduceOp::sum) return combine<Bits, Sum, Finish::plain>;
    if (op == ReduceOp::product) return combine<Bits, Product, Finish::plain>;
    if (op == ReduceOp::band) return combine<Bits, And, Finish::plain>;
    if (op == ReduceOp::bor) return combine<Bits, Or, Finish::plain>;
    if (op == ReduceOp::bxor) return combine<Bits, Xor, Finish::plain>;
  } else {
    if (op == ReduceOp::sum) return combine<T, Sum, Finish::plain>;
    if (op == ReduceOp::product) return combine<T, Product, Finish::plain>;
    if (op == ReduceOp::avg) return combine<T, Sum, Finish::averaged>;
    if (op == ReduceOp::premul_sum) return combine<T, Sum, Finish::premultiplied>;
  }
  return nullptr;
}

}  // namespace
}  // namespace shim::SHIM_INSTRUCTIONS
