// The memory that the ranks of a group share.
#pragma once

#include "machine/thresholds.hpp"
#include "platform/segment.hpp"

namespace shim {

// That of a group of `ranks` ranks, with its header written and all else zero; `is_crowded` says whether they have less
// processors than they are. What lies behind SharedLayout::bytes_at_first() is not reserved yet.
Segment memory_for(int ranks, const Thresholds& thresholds, bool is_crowded);
// The same of the ranks of one host, in a group of `ranks` on several, which draw one `hash_seed` for it.
Segment memory_across(int ranks, bool is_crowded, std::uint64_t hash_seed);

}  // namespace shim
