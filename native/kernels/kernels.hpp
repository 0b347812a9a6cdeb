// The reduction kernels, which are compiled once for each instruction set; reduce_kernels.cpp chooses between them.
#pragma once

#include <cstddef>

#include "tensors/dtypes.hpp"

namespace shim {

// Combines `count` elements of each of `ranks` inputs, in their order, into `output`, which may be one of them. Unless
// `copy` is null, the result goes there too.
// `factors` has one number per input, for PREMUL_SUM alone. No pointer need be aligned.
using Kernel = void (*)(std::byte* output, std::byte* copy, const std::byte* const* inputs, std::size_t ranks,
                        const double* factors, std::size_t count);

// The kernel for an op and a dtype; null where is_defined(op, dtype) is false.
namespace portable {
Kernel kernel_for(Dtype dtype, ReduceOp op);
}
namespace x86_64_v2 {
Kernel kernel_for(Dtype dtype, ReduceOp op);
}
namespace x86_64_v3 {
Kernel kernel_for(Dtype dtype, ReduceOp op);
}
namespace x86_64_v4 {
Kernel kernel_for(Dtype dtype, ReduceOp op);
}
namespace x86_64_v4_bf16 {
Kernel kernel_for(Dtype dtype, ReduceOp op);
}
namespace aarch64_bf16 {
Kernel kernel_for(Dtype dtype, ReduceOp op);
}

}  // namespace shim
