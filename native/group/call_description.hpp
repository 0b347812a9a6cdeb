// A rank's call as a person reads it, taken from shared memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "group/group.hpp"

namespace shim {

std::string_view name_of(OperationKind kind);
bool takes_root(OperationKind kind);
bool takes_op(OperationKind kind);
std::string shape_of(const CallDescriptor& call);
std::string announced_by(const CallDescriptor& call);  // what comes after a barrier; of a plain one nothing

// One line: all_reduce(float32 [2, 3], SUM). May be asked of a call that is being written over; then it is anything,
// or empty.
std::string describe_call(const Group& group, int rank, std::uint64_t sequence);

// "rank 3", and which rank of the world that is where it is another one.
std::string rank_label(const Group& group, int rank);
// "3", "3 and 4", "3, 4 and 5".
std::string list_of_ranks(const Group& group, const std::vector<int>& ranks);

}  // namespace shim
