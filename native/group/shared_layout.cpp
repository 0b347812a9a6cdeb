#include "group/shared_layout.hpp"

#include <algorithm>
#include <bit>

namespace shim {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t channels_budget = 16 * 1024 * 1024;  // for all pairs of ranks together
constexpr std::size_t copies_budget = 32 * 1024 * 1024;    // for the large slots of the ranks of all hosts

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Pairs grow with the square of the ranks, so a channel's slots shrink in large groups.
std::size_t channel_payload_for(std::size_t size) {
  const std::size_t share = channels_budget / (size * size * channel_slots);
  return std::clamp(share / line_bytes * line_bytes, std::size_t{1024}, std::size_t{64 * 1024});
}

// What ranks of several hosts have of their large slots is in the memory of each host.
std::size_t large_slot_for(std::size_t ranks, Reach reach) {
  if (reach == Reach::one_host) return ring_slot_bytes;
  return std::clamp(std::bit_floor(copies_budget / (ranks * ring_slots)), std::size_t{4 * small_slot_bytes},
                    most_across_bytes);
}

}  // namespace

SharedLayout::SharedLayout(int size, Reach reach)
    : size_(size), large_slot_(large_slot_for(static_cast<std::size_t>(size), reach)) {
  const auto ranks = static_cast<std::size_t>(size);
  const std::size_t pairs = reach == Reach::one_host ? ranks * ranks : 0;  // of ranks that send each other messages
  channel_payload_ = channel_payload_for(ranks);
  call_stride_ = rounded_up(
      sizeof(CallDescriptor) + 2 * ranks * sizeof(std::uint64_t) + refusal_bytes + sizeof(CallPlace), line_bytes);
  header_ = add(1, sizeof(GroupHeader));
  arrivals_ = add(ranks, 2 * sizeof(ArrivalLine));
  calls_ = add(ranks, call_slots * call_stride_);
  progress_ = add(ranks, sizeof(ProgressLine));
  doorbells_ = add(ranks, sizeof(Doorbell));
  status_ = add(ranks, sizeof(StatusLine));
  notes_ = add(ranks, sizeof(RankNote));
  places_stride_ = rounded_up(std::max(ranks, std::size_t{2}) * sizeof(Place), line_bytes);
  places_ = add(ranks, 2 * places_stride_);
  directs_ = add(ranks, sizeof(DirectLine));
  crosses_ = add(ranks, sizeof(CrossLine));
  channels_ = add(pairs, sizeof(Channel) + channel_slots * line_bytes);
  small_rings_ = add(ranks, ring_slots * small_slot_bytes);
  at_first_ = total_ = rounded_up(total_, page_bytes);
  lent_ = add(ranks, 2 * lent_allocations * sizeof(LentAllocation));
  // No two rooms of two ranks begin at the same place of a page: they would compete for the same lines of the caches.
  room_stride_ = channel_payload_ + line_bytes;
  rooms_ = add(pairs, channel_rooms_bytes() + line_bytes);
  total_ = rounded_up(total_, page_bytes);
  rings_ = add(ranks, ring_slots * large_slot_);
  total_ = rounded_up(total_, page_bytes);
}

SharedLayout::Region SharedLayout::add(std::size_t count, std::size_t bytes) {
  const Region region{total_, rounded_up(bytes, line_bytes)};
  total_ += count * region.stride;
  return region;
}

}  // namespace shim
