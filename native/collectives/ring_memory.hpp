// The memory of the rings' large slots, which a group has once an operation needs them.
#pragma once

#include "group/group.hpp"

namespace shim {

// Each rank reserves its own ring, and all learn whether all have. Called on all ranks in the same operation, after
// they have agreed and before anything is written. Throws Failure(memory) on every rank when there is not enough for
// one; the operation is over then, and another one may try again.
void reserve_rings(Group& group);

}  // namespace shim
