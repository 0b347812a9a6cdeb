// What one rank of a group of two has for the other, copied from tensor to tensor by both: see ../cross_copy.hpp.
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

}  // namespace shim
