#include "collectives/operation.hpp"

#include <exception>
#include <new>
#include <string>

#include "group/loans.hpp"

namespace shim {

void Operation::execute(Group& group) {
  group.loans().drop_freed();
  group.message_loans().drop_freed();
  prepare(group);
  try {
    take_part(group);
  } catch (...) {
    if (!group.is_usable()) group.loans().give_up();
    throw;
  }
  store();
}

void Operation::prepare(Group& group) {
  try {
    load();
  } catch (const std::bad_alloc&) {
    const std::string reason =
        "there is not enough memory to copy a tensor that is not contiguous, or overlaps with another of the call";
    arrive_refused(group, {reason, ""});
    throw Failure(FailureKind::memory, reason);
  }
}

void Operation::take_part(Group& group) {
  try {
    const Agreement agreement = arrive(group, call_, *this);
    if (agreement.is_inline)
      read_lines(group, agreement);
    else
      read_large(group, agreement);
  } catch (const Failure&) {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const std::bad_alloc&) {
    give_up(group, "there is not enough memory");
  } catch (const std::exception& cause) {
    give_up(group, cause.what());
  }
}

// The others are in the operation, and would wait for this rank.
void Operation::give_up(Group& group, const std::string& cause) {
  group.fail(Failure(FailureKind::engine, "operation " + std::to_string(group.sequence) +
                                              " of the group could not be carried out: " + cause +
                                              "\nThe group can no longer be used."));
}

void Operation::read_large(Group& group, const Agreement& agreement) {
  const DirectAccess access(group, agreement);
  if (!access.is_given()) return read_rings(group, agreement);
  read_directly(group, agreement, access);
  access.finish();
}

std::uint16_t Operation::lend(Group& group, std::uint64_t sequence) const {
  if (!is_worth_lending(group, bytes())) return 0;
  try {
    Loan loan(group, sequence);
    lend_to(loan);
    return loan.flags();
  } catch (const std::bad_alloc&) {
    return 0;  // the rings need none
  }
}

}  // namespace shim
