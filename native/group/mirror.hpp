// What ranks on other hosts say of themselves, and where that is kept. See carrier.hpp. All functions may be called by
// any thread while the group's own operations go on. What a rank of this host says is in its shared memory, and not
// taken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "group/group.hpp"

namespace shim {

// That a rank says it has arrived at so many operations, when it is asked.
void take_arrival(const Group& group, int rank, std::uint64_t sequence);
void take_place(const Group& group, int rank, std::uint64_t sequence, std::string_view place);
// What a rank waits for and where it called, since so many nanoseconds; an empty text ends that.
void take_note(const Group& group, int rank, std::string_view waits_for, std::string_view waits_at,
               std::int64_t since_ns);

}  // namespace shim
