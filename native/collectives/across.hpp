// What two ranks have for each other, copied from tensor to tensor.
//
// What one has for the other is copied by both, see ../cross_copy.hpp. Where each has something for the other, both
// read and nobody writes into another's tensor; as with ../direct.hpp, whether both can is agreed on first, and neither
// leaves before both have read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "../group.hpp"
#include "../tensor_view.hpp"

namespace shim {

// Whether to try it with so many bytes. Both ranks come to the same answer.
bool is_worth_copying_across(const Group& group, std::size_t bytes);

// Copies the tensor of rank `from` to that of the other rank, which calls it as well with its own. False on both where
// the receiver cannot read the sender's tensor, or has gaps in its own: then nothing was written.
// `is_exposed` becomes true when it throws and the sender may still write to this rank's tensor.
bool copy_across(Group& group, std::uint64_t sequence, int from, const Buffer& tensor, std::atomic<bool>& is_exposed);

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
