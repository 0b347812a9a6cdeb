// Where in the ranks' programs the calls were made on which they disagree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "group/group.hpp"

namespace shim {

// Says to the others where this rank made its call of operation `sequence`.
void tell_place(Group& group, std::uint64_t sequence, std::string_view place);

// Where each rank made its call, once they have said so; all ranks that find a disagreement do. Empty for a rank that
// is gone, or has not said so within a second.
std::vector<std::string> places_of_calls(const Group& group, std::uint64_t sequence);

}  // namespace shim
