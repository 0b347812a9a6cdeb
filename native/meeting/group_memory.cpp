#include "meeting/group_memory.hpp"

#include <new>

#include "group/shared_layout.hpp"
#include "platform/process.hpp"

namespace shim {

Segment memory_for(int ranks, const Thresholds& thresholds, bool is_crowded) {
  const SharedLayout layout(ranks);
  Segment segment = Segment::create_in_part(layout.total_bytes(), layout.bytes_at_first());
  new (segment.data() + layout.header()) GroupHeader{thresholds, random_number(), is_crowded};
  return segment;
}

}  // namespace shim
