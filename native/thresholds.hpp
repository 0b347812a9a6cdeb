// From which sizes on operations go another way, and how that follows from what the machine is like.
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine.hpp"

namespace shim {

// In bytes. What operations give does not depend on them. All ranks of a group have the same, because by some of them
// they decide, without a word, which way to go together.
struct Thresholds {
  std::uint64_t one_shot;  // an all_reduce of at most so many is one-shot
  std::uint64_t lend;      // an operation that moves at least so many on a rank lends its tensors
  std::uint64_t piece;     // what is for all ranks alike goes through a slot of a ring in pieces of at most so many
  std::uint64_t stream;    // an operation that touches more than so many, on all ranks together, streams its outputs

  bool operator==(const Thresholds&) const = default;
};

// The best ones, as far as is known, for `ranks` ranks that may use so many processors. As powers of two they do not
// follow what measurements of one machine differ by.
Thresholds thresholds_for(const Machine& machine, int ranks, int processors);

// Whether operations can be carried out with them.
bool are_possible(const Thresholds& thresholds);

}  // namespace shim
