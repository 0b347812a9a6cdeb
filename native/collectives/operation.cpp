#include "collectives/operation.hpp"

#include <exception>
#include <new>
#include <string>

#include "group/loans.hpp"

namespace shim {

namespace {

// Nobody has given all before it is known which way the data goes.
Given given_by(const CallDescriptor& call) {
  Given given;
  given.filled = Given::never;
  const bool is_of_root = call.kind == OperationKind::broadcast || call.kind == OperationKind::scatter;
  const bool is_for_root = call.kind == OperationKind::reduce || call.kind == OperationKind::gather;
  if (is_of_root) given.only = call.root;
  if (is_for_root) given.but = call.root;
  return given;
}

}  // namespace

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
    group.given = given_by(call_.descriptor);
    if (agreement.is_inline) return read_lines(group, agreement);
    read_large(group, agreement);
    group.settle();
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
  group.withdraw();
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
