#include "machine/thresholds.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

namespace shim {
namespace {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t no_threshold = std::uint64_t{1} << 48;  // no memory has so many bytes

std::atomic<std::uint64_t> chosen_swap{0};

// It takes about so many ways of a line that two ranks wait for each other once more: several lines have to come, one
// after the other, and the ranks are never quite at the same place.
constexpr double ways_of_a_wait = 6;

// Each rank copies once what the rings copy twice, and nobody has to wait for the other's half. Where the kernel copied
// at three to four times less than a processor, this lost at every size; at half, it took down to three quarters of the
// time.
std::uint64_t swap_threshold(const Machine& machine, bool is_crowded) {
  if (const std::uint64_t chosen = chosen_swap.load()) return chosen;
  const Speeds& speeds = machine.speeds;
  return is_crowded || 5 * speeds.cross_bytes_per_us < 2 * speeds.copy_bytes_per_us ? no_threshold : 512 * kib;
}

// Nothing was gained below; and little of what is measured may be chance. What ranks that share a processor have read
// is in its caches anyway.
std::uint64_t claim_threshold(const Speeds& speeds, bool is_crowded) {
  return !is_crowded && 3 * speeds.claimed_rewrite_ns <= 2 * speeds.rewrite_ns ? 4 * kib : no_threshold;
}

double copied_in_a_way(const Speeds& speeds) {  // bytes
  return static_cast<double>(speeds.line_ns) * static_cast<double>(speeds.copy_bytes_per_us) / 1e3;
}

std::uint64_t nearest_power_of_two(double bytes, std::uint64_t least, std::uint64_t most) {
  const double within = std::clamp(bytes, static_cast<double>(least), static_cast<double>(most));
  return std::uint64_t{1} << std::lround(std::log2(within));
}

}  // namespace

Thresholds thresholds_for(const Machine& machine, int ranks, int processors) {
  const double usual = copied_in_a_way(usual_speeds);
  // What is measured counts half: on a virtual machine it doubles and halves again within minutes.
  const double copied_in_a_wait = ways_of_a_wait * std::sqrt(usual * copied_in_a_way(machine.speeds));
  const double size = std::max(ranks, 2);
  // Ranks that share a processor wait for each other's turns too.
  const double turns = std::max(1.0, size / std::max(processors, 1));
  // A two-shot all_reduce waits once more than a one-shot, in which a rank reads so many times the tensor more.
  const double read_more = size - 2 + 1 / size;
  return {
      nearest_power_of_two(copied_in_a_wait * turns / read_more, 4 * kib, 256 * kib),
      // The ranks wait for each other in the end, and save the second copy.
      nearest_power_of_two(copied_in_a_wait, 8 * kib, 256 * kib),
      // A slot stays in the second cache beside its source, the ring's other slots and what the caller keeps there.
      std::bit_floor(std::clamp<std::uint64_t>(machine.second_cache / 8, 64 * kib, ring_slot_bytes)),
      std::max<std::uint64_t>(machine.last_cache / 4 * 3, 1024 * kib),
      swap_threshold(machine, turns > 1),
      claim_threshold(machine.speeds, turns > 1),
  };
}

Thresholds thresholds_across(std::size_t slot_bytes) {
  return {no_threshold, no_threshold, slot_bytes, no_threshold, no_threshold, no_threshold};
}

void set_cross_memory_from(std::uint64_t bytes) { chosen_swap.store(std::min(bytes, no_threshold)); }

bool are_possible(const Thresholds& thresholds, std::size_t slot_bytes) {
  return thresholds.piece >= cell_unit && thresholds.piece <= slot_bytes && thresholds.piece % cell_unit == 0 &&
         std::max({thresholds.one_shot, thresholds.lend, thresholds.stream, thresholds.swap, thresholds.claim}) <=
             no_threshold;
}

}  // namespace shim
