// The kernels for processors with SSE4.2.
#define SHIM_INSTRUCTIONS x86_64_v2
#include "kernels/every_dtype.hpp"
