// From which sizes on operations go another way, and how that follows from what the machine is like.
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/machine.hpp"

namespace shim {

inline constexpr std::size_t ring_slot_bytes = 256 * 1024;
inline constexpr std::size_t most_across_bytes = 1024 * 1024;  // of a slot in a group across hosts
inline constexpr std::size_t cell_unit = 64;  // what is cut into cells for the ranks is: whole elements and cache lines

// In bytes. What operations give does not depend on them. All ranks of a group have the same, because by some of them
// they decide, without a word, which way to go together.
struct Thresholds {
  std::uint64_t one_shot;  // an all_reduce of at most so many is one-shot
  std::uint64_t lend;      // an operation that moves at least so many on a rank lends its tensors
  std::uint64_t piece;     // what is for all ranks alike goes through a slot of a ring in pieces of at most so many
  std::uint64_t stream;    // an operation that touches more than so many, on all ranks together, streams its outputs
  std::uint64_t swap;      // what two ranks have for each other, at least so many each, is read from tensor to tensor
  std::uint64_t claim;     // who reads at least so many that the other rank will write anew claims their lines

  bool operator==(const Thresholds&) const = default;
};

// The best ones, as far as is known, for `ranks` ranks that may use so many processors. As powers of two they do not
// follow what measurements of one machine differ by.
Thresholds thresholds_for(const Machine& machine, int ranks, int processors);

// Those of ranks on several hosts: what they give each other goes through slots of so many bytes, in one piece.
Thresholds thresholds_across(std::size_t slot_bytes);

// What groups whose rank 0 this process becomes have for `swap`; 0, as at first, leaves it to the machine.
void set_cross_memory_from(std::uint64_t bytes);

// Whether operations can be carried out with them, through slots of so many bytes.
bool are_possible(const Thresholds& thresholds, std::size_t slot_bytes);

}  // namespace shim
