// The kernels for processors with AVX-512.
#define SHIM_INSTRUCTIONS x86_64_v4
#include "kernels/every_dtype.hpp"
