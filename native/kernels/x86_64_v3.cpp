// The kernels for processors with AVX2 and F16C.
#define SHIM_INSTRUCTIONS x86_64_v3
#include "kernels/every_dtype.hpp"
