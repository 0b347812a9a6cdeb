// Facts about this process that the engine depends on.
#pragma once

#include <cstdint>

namespace shim {

// Changes in every forked child: what was made under another generation belongs to the parent and must not be touched.
std::uint64_t process_generation();

}  // namespace shim
