// The memory that the ranks of a group share.
#pragma once

#include "machine/thresholds.hpp"
#include "platform/segment.hpp"

namespace shim {

// That of a group of `ranks` ranks, with its header written and all else zero; `is_crowded` says whether they have less
// processors than they are. What lies behind SharedLayout::bytes_at_first() is not reserved yet.
Segment memory_for(int ranks, const Thresholds& thresholds, bool is_crowded);

}  // namespace shim
