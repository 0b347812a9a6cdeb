// Who waits for whom, and circles in that.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "group/group.hpp"

namespace shim {

// The ranks without which `rank` cannot go on, as its note says; empty where it notes no wait.
std::vector<int> awaited_by(const Group& group, int rank);
// "in group 'world'", or "to make group 'pairs' of ranks 0, 1": where `rank` waits, which must have noted it.
std::string noted_where(const Group& group, int rank);

// Each of these awaits the next, and the last one the first: the shortest circle through the first of those on one that
// can be reached from `start`. Empty without one. awaited_by(one) is called once for each that can be reached.
std::vector<int> circle_from(int start, const std::function<std::vector<int>(int)>& awaited_by);

struct WaitInCircle {
  int rank;
  std::string where;  // as of noted_where
  Held held;
};

// "rank 0 waits in group 'a' for rank 1, which waits in group 'b' for rank 0: they wait for each other".
std::string told_circle(std::vector<WaitInCircle> circle);

}  // namespace shim
