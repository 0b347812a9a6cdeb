// What ranks that share no memory tell each other, as bytes, and how it is written where a shared segment would have
// it. See carrier.hpp. All functions may be called by any thread while the group's own operations go on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "group/group.hpp"

namespace shim {

// This rank's arrival at `sequence`: as many bytes for every call.
std::string packed_arrival(const Group& group, std::uint64_t sequence);
std::size_t packed_arrival_bytes();
// The tables of its call: as many bytes for every call of the group.
std::string packed_tables(const Group& group, std::uint64_t sequence);

// Takes the arrivals of all ranks at one operation, this one's too. False where the calls can be compared only with
// their tables: then nobody has arrived yet for those who wait, until take_tables. Throws Failure(engine) where a
// packet is of another operation.
bool take_arrivals(Group& group, const std::vector<std::string_view>& packets);
void take_tables(Group& group, std::uint64_t sequence, const std::vector<std::string_view>& tables);
// One rank's arrival with the tables behind it: what a rank says in a long wait. Ignored where it is known.
void take_arrival(Group& group, int rank, std::string_view packet, std::string_view tables);

void take_place(Group& group, int rank, std::uint64_t sequence, std::string_view place);
// What a rank waits for and where it called, since so many nanoseconds; an empty text ends that.
void take_note(Group& group, int rank, std::string_view waits_for, std::string_view waits_at, std::int64_t since_ns);

}  // namespace shim
