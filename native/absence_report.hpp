// Where every rank of a group is, as one of them can tell.
#pragma once

#include <string>
#include <vector>

#include "group.hpp"

namespace shim {

// Lines that each begin with a newline: of every rank what it waits for, or where it is in its program, and its last
// calls. Those of `asked` that have left no note are asked, which takes up to a second together; the others have
// arrived.
std::string report_of(const Group& group, const std::vector<int>& asked);

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

}  // namespace shim
