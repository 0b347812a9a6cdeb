// Elementwise reduction of the ranks' data.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "kernels/kernels.hpp"
#include "tensors/dtypes.hpp"

namespace shim {

// The kernels for one instruction set.
struct KernelSet {
  std::string_view name;
  Kernel (*kernel_for)(Dtype dtype, ReduceOp op);
};

// Those that this processor can run, the fastest first. All give the same bits.
const std::vector<KernelSet>& usable_kernels();

// The kernel for an op and a dtype, for which is_defined(op, dtype) must hold. Floats of less than 32 bits are
// accumulated in float32 and rounded once.
Kernel fastest_kernel(Dtype dtype, ReduceOp op);

}  // namespace shim
