// Whether the ranks' calls of an operation fit together, and the table that shows where they do not.
#pragma once

#include <cstdint>

#include "group/group.hpp"

namespace shim {

// Throws Failure(mismatch) unless the calls that all ranks have published for `sequence` fit together. A function of
// shared memory alone, so all ranks come to the same verdict.
void check_agreement(Group& group, std::uint64_t sequence);

}  // namespace shim
