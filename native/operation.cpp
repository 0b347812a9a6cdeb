#include "operation.hpp"

namespace shim {

void Operation::execute(Group& group) {
  load();
  const Agreement agreement = arrive(group, call_, *this);
  if (agreement.is_inline)
    read_lines(group, agreement);
  else
    read_rings(group, agreement);
  store();
}

}  // namespace shim
