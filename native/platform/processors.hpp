// The processors that ranks may run on, and whether there are enough of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace shim {

using Processors = std::vector<int>;  // their numbers, rising

// Those that this thread may run on.
Processors usable_processors();

// As one rank tells another, and back; what is no number ends it.
std::string text_of(const Processors& processors);
Processors processors_in(const std::string& text);

// How many there are for all ranks together.
std::size_t count_together(const std::vector<Processors>& by_rank);
// Whether not every rank can have a processor of its own at the same time.
bool are_crowded(const std::vector<Processors>& by_rank);

}  // namespace shim
