#include "operation.hpp"

#include "loans.hpp"

namespace shim {

void Operation::execute(Group& group) {
  group.loans().drop_freed();
  load();
  try {
    const Agreement agreement = arrive(group, call_, *this);
    if (agreement.is_inline)
      read_lines(group, agreement);
    else
      read_large(group, agreement);
  } catch (...) {
    if (!group.is_usable()) group.loans().give_up();
    throw;
  }
  store();
}

void Operation::read_large(Group& group, const Agreement& agreement) {
  const DirectAccess access(group, agreement);
  if (!access.is_given()) return read_rings(group, agreement);
  read_directly(group, agreement, access);
  access.finish();
}

std::uint16_t Operation::lend(Group& group, std::uint64_t sequence) const {
  if (!is_worth_lending(group, bytes())) return 0;
  Loan loan(group, sequence);
  lend_to(loan);
  return loan.flags();
}

}  // namespace shim
