#include "meeting/group_memory.hpp"

#include <new>

#include "group/shared_layout.hpp"
#include "platform/process.hpp"

namespace shim {

namespace {

Segment memory_with(const SharedLayout& layout, const GroupHeader& header) {
  Segment segment = Segment::create_in_part(layout.total_bytes(), layout.bytes_at_first());
  new (segment.data() + layout.header()) GroupHeader(header);
  return segment;
}

}  // namespace

Segment memory_for(int ranks, const Thresholds& thresholds, bool is_crowded) {
  return memory_with(SharedLayout(ranks), {thresholds, random_number(), is_crowded});
}

Segment memory_across(int ranks, bool is_crowded, std::uint64_t hash_seed) {
  const SharedLayout layout(ranks, Reach::several_hosts);
  return memory_with(layout, {thresholds_across(layout.large_slot_bytes()), hash_seed, is_crowded});
}

}  // namespace shim
