#include "across.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "../agreement.hpp"
#include "../copies.hpp"
#include "../cross_copy.hpp"
#include "../direct.hpp"
#include "../fault_points.hpp"

namespace shim {
namespace {

std::uint64_t address_of(const std::byte* data) { return reinterpret_cast<std::uintptr_t>(data); }

// `cause` is an errno: EFAULT where memory of either tensor is not there, not readable or, here, not writable.
[[noreturn]] void fail_to_copy(Group& group, int from, int cause) {
  group.fail(Failure(FailureKind::engine, "the system cannot copy the tensor of rank " + std::to_string(from) +
                                              " to that of this rank: " + std::strerror(cause) +
                                              "\nThe group can no longer be used."));
}

// Of the receiver, whose tensor is its caller's again when this has gone.
class Receiving {
 public:
  Receiving(Group& group, int from, const CrossCopy& copy, std::atomic<bool>& is_exposed)
      : group_(group), from_(from), copy_(copy), is_exposed_(is_exposed) {
    copy_.open();
  }
  ~Receiving() {
    is_exposed_ = !copy_.end([this] { return group_.process_has_ended(from_); });
  }
  Receiving(const Receiving&) = delete;
  Receiving& operator=(const Receiving&) = delete;

  void receive(std::uint64_t sequence) {
    InterruptChecks checks(group_);
    while (true) {
      checks.check();
      const CrossCopy::Step step = copy_.read_next(sequence);
      const int cause = errno;
      switch (step) {
        case CrossCopy::Step::done:
          return;
        case CrossCopy::Step::moved:
          break;
        case CrossCopy::Step::waits:
          group_.wait_for(from_, [this](int rank) { return rank != from_ || copy_.may_go_on(); });
          break;
        case CrossCopy::Step::failed:
          if (group_.is_gone(from_)) break;  // the next wait for it says how
          fail_to_copy(group_, from_, cause);
      }
    }
  }

 private:
  Group& group_;
  int from_;
  CrossCopy copy_;
  std::atomic<bool>& is_exposed_;
};

bool send_across(Group& group, std::uint64_t sequence, int to, const Buffer& tensor) {
  CrossLine& mine = group.cross(group.rank());
  CrossLine& theirs = group.cross(to);
  mine.address.store(address_of(tensor.data()));
  mine.offered.exchange(sequence);
  group.ring_bell(to);
  group.wait_for(to, [&](int rank) { return rank != to || theirs.answered.load() >= sequence; });
  if (theirs.accepted.load() != sequence) return false;
  const RemoteTensor target(group.process_to_read(to), theirs.address.load());
  CrossCopy copy(theirs.copy, tensor.data(), target, tensor.bytes());
  InterruptChecks checks(group);
  while (copy.write_next() == CrossCopy::Step::moved) {
    group.ring_bell(to);
    checks.check();
  }
  // Each chunk that the receiver takes begins the group's timeout again.
  for (std::uint64_t taken = copy.bytes_taken(); taken < tensor.bytes(); taken = copy.bytes_taken())
    group.wait_for(to, [&](int rank) { return rank != to || copy.bytes_taken() != taken; });
  finish_together(group, sequence);
  return true;
}

bool receive_across(Group& group, std::uint64_t sequence, int from, const Buffer& tensor,
                    std::atomic<bool>& is_exposed) {
  CrossLine& mine = group.cross(group.rank());
  CrossLine& theirs = group.cross(from);
  group.wait_for(from, [&](int rank) { return rank != from || theirs.offered.load() >= sequence; });
  const RemoteTensor source(tensor.goes_through_copy() ? 0 : group.process_to_read(from), theirs.address.load());
  std::optional<Receiving> receiving;
  if (source.is_in_reach() && source.ends_can_be_read(tensor.bytes())) {
    const CrossCopy copy(mine.copy, tensor.data(), source, tensor.bytes());
    receiving.emplace(group, from, copy, is_exposed);
    mine.address.store(address_of(tensor.data()));
    mine.accepted.store(sequence);
  }
  mine.answered.exchange(sequence);
  group.ring_bell(from);
  if (!receiving) return false;
  receiving->receive(sequence);
  finish_together(group, sequence);
  return true;
}

// Where this rank reads so many bytes of the other's tensors, and the other so many of this rank's: both ranks come to
// the same answer. Nobody helps who reads more, as in the rings, where both copy all that goes either way.
bool is_worth_swapping(const Group& group, std::size_t reads, std::size_t is_read) {
  const auto [less, more] = std::minmax(reads, is_read);
  return less > 0 && less >= group.thresholds().swap && more <= less + less / 4;
}

// What has changed meanwhile, because the other rank has given up, is read as well; finish_together() hears of that.
void read_across(Group& group, int from, const RemoteTensor& source, const Part& to) {
  InterruptChecks checks(group);
  for (std::size_t start = 0; start < to.bytes; start += CrossCopy::chunk) {
    fault_point("in_cross_read");
    if (!source.read(start, to.data + start, std::min(CrossCopy::chunk, to.bytes - start))) {
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

// What fits into a slot of the ring may lie there already: see Contribution::fill_first_slot.
bool is_worth_copying_across(const Group& group, std::size_t bytes) {
  return group.size() == 2 && bytes > group.thresholds().piece && group.thresholds().crosses(bytes);
}

bool copy_across(Group& group, std::uint64_t sequence, int from, const Buffer& tensor, std::atomic<bool>& is_exposed) {
  check_agreement(group, sequence);  // fingerprints are not enough where ranks reach into each other's tensors
  const int other = 1 - group.rank();
  return group.rank() == from ? send_across(group, sequence, other, tensor)
                              : receive_across(group, sequence, other, tensor, is_exposed);
}

bool swap_across(Group& group, std::uint64_t sequence, const Swap& swap) {
  if (!is_worth_swapping(group, swap.to.bytes, swap.mine.bytes)) return false;
  check_agreement(group, sequence);  // as above
  const int other = 1 - group.rank();
  CrossLine& line = group.cross(group.rank());
  CrossLine& theirs = group.cross(other);
  line.address.store(address_of(swap.mine.data));
  line.offered.exchange(sequence);
  group.ring_bell(other);
  group.wait_for(other, [&](int rank) { return rank != other || theirs.offered.load() >= sequence; });
  const RemoteTensor source(group.process_to_read(other), theirs.address.load());
  const bool can_read = source.is_in_reach() && source.ends_can_be_read(swap.to.bytes);
  if (can_read) line.accepted.store(sequence);
  line.answered.exchange(sequence);
  group.ring_bell(other);
  group.wait_for(other, [&](int rank) { return rank != other || theirs.answered.load() >= sequence; });
  if (!can_read || theirs.accepted.load() != sequence) return false;
  read_across(group, other, source, swap.to);
  copy_shared(swap.own_to, swap.own.data, swap.own.bytes);
  finish_together(group, sequence);
  return true;
}

}  // namespace shim
