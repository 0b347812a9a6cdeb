#include "operation.hpp"

namespace shim {

void Operation::execute(Group& group) {
  load();
  const std::vector<Part> mine = contribution();
  std::size_t bytes = 0;
  for (const Part& part : mine) bytes += part.bytes;
  const Agreement agreement = arrive(group, call_, bytes, mine);
  if (agreement.is_inline)
    read_lines(group, agreement);
  else
    read_rings(group, agreement);
  store();
}

}  // namespace shim
