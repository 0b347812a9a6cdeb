// What a process tells of its groups when it is asked, as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "group/group.hpp"
#include "reports/inquiries.hpp"

namespace shim {

struct Told {
  Group* group;
  std::uint64_t inode;  // of its memory
};

// {"protocol": its version, "groups": [...], "more": how many groups were left out}
std::string facts_of_groups(const std::vector<Told>& groups);
// "has waited 12.0 s: ... (of group 'pairs')".
std::string longest_wait(const std::vector<Told>& groups);
// A ProcessWait: its numbers, where it waits, and the addresses, each in a line. Empty where there is none.
std::string wait_that_holds(const std::vector<Told>& groups);
std::optional<ProcessWait> parsed_wait(const std::string& text);

}  // namespace shim
