// How large the processor's caches are.
#pragma once

#include <cstddef>
#include <string_view>

namespace shim {

// Bytes of the largest cache that one processor uses, a usual size where the system does not say.
std::size_t last_cache_bytes();

// Bytes of a size as the kernel writes it: "32768K". 0 of anything else.
std::size_t bytes_of_cache(std::string_view size);

}  // namespace shim
