#include "collectives/ring_memory.hpp"

#include <string>
#include <vector>

#include "group/descriptions.hpp"
#include "platform/fault_points.hpp"

namespace shim {

void reserve_rings(Group& group) {
  ProgressLine& mine = group.progress(group.rank());
  if (!mine.has_ring.load()) mine.has_ring.store(group.reserve_ring());
  fault_point("in_reserve");
  mine.tried_to_reserve.exchange(group.sequence);
  group.ring_bells();
  const auto has_tried = [&group](int rank) { return group.progress(rank).tried_to_reserve.load() >= group.sequence; };
  std::vector<int> without;
  for (int rank = 0; rank < group.size(); ++rank) {
    group.wait_for(rank, has_tried);
    if (!group.progress(rank).has_ring.load()) without.push_back(rank);
  }
  group.has_rings = without.empty();
  group.given.agreed = group.sequence;
  if (group.has_rings) return;
  throw Failure(FailureKind::memory, "there is not enough memory for the buffers that operation " +
                                         std::to_string(group.sequence) +
                                         " of the group needs: " + std::to_string(ring_slots * ring_slot_bytes / 1024) +
                                         " KB each could not be reserved on " + list_of_ranks(group, without) +
                                         "\nNo output was written; the group can still be used.");
}

}  // namespace shim
