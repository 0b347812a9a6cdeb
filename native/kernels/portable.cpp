// The kernels for whatever the compiler's own target has.
#define SHIM_INSTRUCTIONS portable
#include "kernels/every_dtype.hpp"
