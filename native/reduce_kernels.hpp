// Elementwise reduction of the ranks' data.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "dtypes.hpp"
#include "kernels/kernels.hpp"

namespace shim {

// The kernels for one instruction set.
struct KernelSet {
  std::string_view name;
  Kernel (*kernel_for)(Dtype dtype, ReduceOp op);
};

// Those that this processor can run, the fastest first. All give the same bits.
const std::vector<KernelSet>& usable_kernels();

// Combines `count` elements of each input, in the order of `inputs`, into `output`, which may be one of them. Floats of
// less than 32 bits are accumulated in float32 and rounded once. `factors` has one number per input for PREMUL_SUM.
// The pointers need not be aligned. is_defined(op, dtype) must hold.
void combine(Dtype dtype, ReduceOp op, std::byte* output, const std::vector<const std::byte*>& inputs,
             const std::vector<double>& factors, std::size_t count);

}  // namespace shim
