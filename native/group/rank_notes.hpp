// What the ranks have noted in shared memory of their waits and of their last calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "group/group.hpp"

namespace shim {

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
