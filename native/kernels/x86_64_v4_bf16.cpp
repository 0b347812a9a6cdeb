// The kernels for processors with AVX-512 that convert to bfloat16 themselves.
#define SHIM_INSTRUCTIONS x86_64_v4_bf16
#include "kernels/combine.hpp"
