// What the leader of a host sends another one: the arrivals of its ranks at an operation, with their calls and what
// they give to the ranks there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "group/group.hpp"

namespace shim {

// Of the ranks `from`, which have arrived at `sequence`, for the ranks `to`.
std::string packed_arrivals(const Group& group, const std::vector<int>& from, const std::vector<int>& to,
                            std::uint64_t sequence);

// Puts them where the ranks of this host, `to`, read them. Throws Failure(engine) where they are not such arrivals, and
// Failure(memory) where there is no room for their data.
void take_arrivals(Group& group, const std::vector<int>& from, const std::vector<int>& to, std::uint64_t sequence,
                   std::string_view frame);

}  // namespace shim
