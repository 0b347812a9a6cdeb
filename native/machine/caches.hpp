// How large the processor's caches are.
#pragma once

#include <cstddef>
#include <string_view>

namespace shim {

inline constexpr std::size_t line_bytes = 128;  // two cache lines: the processor prefetches them in pairs

// Bytes of the caches of the second level and of the largest that one processor uses, usual sizes where the system does
// not say.
struct Caches {
  std::size_t second;
  std::size_t last;
};
Caches caches_of_processor();

// Bytes of a size as the kernel writes it: "32768K". 0 of anything else.
std::size_t bytes_of_cache(std::string_view size);

}  // namespace shim
