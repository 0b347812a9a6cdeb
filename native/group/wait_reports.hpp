// What a group asks reports/ for, which asks the other ranks' processes and so stands above the group.
#pragma once

#include <string>
#include <vector>

namespace shim {

class Group;

// Carried out by reports/absence_report.cpp.
// Lines that each begin with a newline: of every rank what it waits for, or where it is in its program, and its last
// calls. Those of `asked` that have left no note are asked; the others have arrived. The last line is of processes that
// wait for each other in a circle, where there are some. All that is asked takes up to a second together.
std::string report_of(const Group& group, const std::vector<int>& asked);

}  // namespace shim
