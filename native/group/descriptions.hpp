// Ranks, their calls and their waits as a person reads them, taken from shared memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

// The number of the last operation that `rank` arrived at.
std::uint64_t newest_call(const Group& group, int rank);

// "operation 42, barrier(), at train.py:12 in step": the call in which `rank` has noted that it waits, or waited when
// it went. Empty where it has not.
std::string noted_call(const Group& group, int rank);
// The same with "has waited 12.0 s: " before it.
std::string noted_wait(const Group& group, int rank);

// The last calls that `rank` began, newest first: "42 barrier(), 41 all_reduce(float32 [4], SUM)"; empty when there
// are none.
std::string last_calls(const Group& group, int rank);

// Notes that this rank waits for these.
void note_awaited(const Group& group, const std::vector<int>& ranks);

}  // namespace shim
