// The kernels of every dtype. Included by one file for each instruction set, which names it in SHIM_INSTRUCTIONS.
#include "kernels/combine.hpp"

namespace shim::SHIM_INSTRUCTIONS {
namespace {

template <class T>
Kernel complex_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return combine_parts<T, Sum, Finish::plain>;
    case ReduceOp::avg:
      return combine_parts<T, Sum, Finish::averaged>;
    case ReduceOp::premul_sum:
      return combine_parts<T, Sum, Finish::premultiplied>;
    case ReduceOp::product:
      if constexpr (std::is_arithmetic_v<T>) return multiply_complex<T>;
      return nullptr;
    default:
      return nullptr;
  }
}

Kernel bool_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::bor:
      return combine<Bool, Or, Finish::plain>;
    case ReduceOp::bxor:
      return combine<Bool, Xor, Finish::plain>;
    case ReduceOp::product:
    case ReduceOp::min:
    case ReduceOp::band:
      return combine<Bool, And, Finish::plain>;
    default:
      return nullptr;
  }
}

}  // namespace

Kernel kernel_for(Dtype dtype, ReduceOp op) {
  switch (dtype) {
    case Dtype::boolean:
      return bool_kernel(op);
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
    case Dtype::complex32:
      return complex_kernel<Float16>(op);
    case Dtype::complex64:
      return complex_kernel<float>(op);
    case Dtype::complex128:
      return complex_kernel<double>(op);
    default:
      return nullptr;
  }
}

}  // namespace shim::SHIM_INSTRUCTIONS
