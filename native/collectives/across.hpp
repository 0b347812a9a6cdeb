// What two ranks have for each other, read by each from the other's tensor through the kernel.
//
// As with direct.hpp, whether both can is agreed on first, and neither leaves before both have read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "group/group.hpp"
#include "tensors/tensor_view.hpp"

namespace shim {

// What a rank has for the other one and gets from it, and its own part, which it copies to its output.
struct Swap {
  Part mine;
  Part to;  // where what the other has for this rank goes
  Part own;
  std::byte* own_to;
};

// Carries an operation of two ranks out so where that is worth it: both read what is for them. False on both where it
// is not, or where one of them cannot read the other's tensor: then nothing was written.
bool swap_across(Group& group, std::uint64_t sequence, const Swap& swap);

}  // namespace shim
