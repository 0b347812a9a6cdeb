// The kernels for processors that convert to bfloat16 themselves. All others are the same as without that.
#define SHIM_INSTRUCTIONS aarch64_bf16
#include "kernels/combine.hpp"

namespace shim::aarch64_bf16 {

Kernel kernel_for(Dtype dtype, ReduceOp op) {
  return dtype == Dtype::bfloat16 ? kernel_of<BFloat16>(op) : portable::kernel_for(dtype, op);
}

}  // namespace shim::aarch64_bf16
