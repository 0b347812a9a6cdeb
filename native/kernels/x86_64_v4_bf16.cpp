// The kernels for processors with AVX-512 that convert to bfloat16 themselves. All others are the same as without that.
#define SHIM_INSTRUCTIONS x86_64_v4_bf16
#include "kernels/combine.hpp"

namespace shim::x86_64_v4_bf16 {

Kernel kernel_for(Dtype dtype, ReduceOp op) {
  return dtype == Dtype::bfloat16 ? kernel_of<BFloat16>(op) : x86_64_v4::kernel_for(dtype, op);
}

}  // namespace shim::x86_64_v4_bf16
