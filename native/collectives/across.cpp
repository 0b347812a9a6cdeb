#include "collectives/across.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "collectives/direct.hpp"
#include "group/descriptions.hpp"
#include "machine/copies.hpp"
#include "platform/fault_points.hpp"
#include "platform/process.hpp"

namespace shim {
namespace {

constexpr std::size_t chunk = 256 * 1024;  // bytes between two looks at whether the wait was interrupted

std::uint64_t address_of(const std::byte* data) { return reinterpret_cast<std::uintptr_t>(data); }

// `cause` is an errno: EFAULT where memory of either tensor is not there, not readable or, here, not writable.
[[noreturn]] void fail_to_copy(Group& group, int from, int cause) {
  group.fail(Failure(FailureKind::engine, "the system cannot copy the tensor of " + rank_label(group, from) +
                                              " to that of this rank: " + std::strerror(cause) +
                                              "\nThe group can no longer be used."));
}

// Where this rank reads so many bytes of the other's tensors, and the other so many of this rank's: both ranks come to
// the same answer. Nobody helps who reads more, as in the rings, where both copy all that goes either way.
bool is_worth_swapping(const Group& group, std::size_t reads, std::size_t is_read) {
  const auto [less, more] = std::minmax(reads, is_read);
  return less > 0 && less >= group.thresholds().swap && more <= less + less / 4;
}

// What has changed meanwhile, because the other rank has given up, is read as well; finish_together() hears of that.
void read_across(Group& group, int from, int process, std::uint64_t address, const Part& to) {
  InterruptChecks checks(group);
  for (std::size_t start = 0; start < to.bytes; start += chunk) {
    fault_point("in_cross_read");
    if (!read_memory(process, address + start, to.data + start, std::min(chunk, to.bytes - start))) {
      const int cause = errno;
      const auto is_other = [from](int rank) { return rank != from; };
      if (cause == ESRCH) group.wait_for(from, is_other);  // until the group has heard of its end
      group.check_present(from);
      fail_to_copy(group, from, cause);
    }
    checks.check();
  }
}

}  // namespace

bool swap_across(Group& group, std::uint64_t sequence, const Swap& swap) {
  if (!is_worth_swapping(group, swap.to.bytes, swap.mine.bytes)) return false;
  const int other = 1 - group.rank();
  CrossLine& line = group.cross(group.rank());
  CrossLine& theirs = group.cross(other);
  line.address.store(address_of(swap.mine.data));
  line.offered.exchange(sequence);
  group.ring_bell(other);
  group.wait_for(other, [&](int rank) { return rank != other || theirs.offered.load() >= sequence; });
  const int process = group.peers().process_to_read(other);
  const std::uint64_t address = theirs.address.load();
  const bool can_read = process != 0 && can_read_ends(process, address, swap.to.bytes);
  if (can_read) line.accepted.store(sequence);
  line.answered.exchange(sequence);
  group.ring_bell(other);
  group.wait_for(other, [&](int rank) { return rank != other || theirs.answered.load() >= sequence; });
  if (!can_read || theirs.accepted.load() != sequence) {
    group.given.agreed = sequence;
    return false;
  }
  read_across(group, other, process, address, swap.to);
  copy_bytes(swap.own_to, swap.own.data, swap.own.bytes);
  finish_together(group, sequence);
  return true;
}

}  // namespace shim
