#include "across.hpp"

#include <optional>

#include "../agreement.hpp"
#include "../cross_copy.hpp"
#include "../direct.hpp"
#include "../process.hpp"

namespace shim {
namespace {

std::uint64_t address_of(const Buffer& tensor) { return reinterpret_cast<std::uintptr_t>(tensor.data()); }

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
      switch (copy_.read_next(sequence)) {
        case CrossCopy::Step::done:
          return;
        case CrossCopy::Step::moved:
          break;
        case CrossCopy::Step::waits:
          group_.wait_for(from_, [this](int rank) { return rank != from_ || copy_.may_go_on(); });
          break;
        case CrossCopy::Step::failed:
          if (group_.is_gone(from_)) break;  // the next wait for it says how
          group_.fail(Failure(FailureKind::engine, "the system cannot copy the tensor of rank " +
                                                       std::to_string(from_) +
                                                       " to that of this rank\nThe group can no longer be used."));
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
  mine.address.store(address_of(tensor));
  mine.offered.exchange(sequence);
  group.ring_bell(to);
  group.wait_for(to, [&](int rank) { return rank != to || theirs.answered.load() >= sequence; });
  if (theirs.accepted.load() != sequence) return false;
  CrossCopy copy(theirs.copy, group.process_to_read(to), tensor.data(), theirs.address.load(), tensor.bytes());
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
  const std::uint64_t address = theirs.address.load();
  const int process = tensor.goes_through_copy() ? 0 : group.process_to_read(from);
  const CrossCopy copy(mine.copy, process, tensor.data(), address, tensor.bytes());
  std::optional<Receiving> receiving;
  if (process != 0 && can_read_ends(process, address, tensor.bytes())) {
    receiving.emplace(group, from, copy, is_exposed);
    mine.address.store(address_of(tensor));
    mine.accepted.store(sequence);
  }
  mine.answered.exchange(sequence);
  group.ring_bell(from);
  if (!receiving) return false;
  receiving->receive(sequence);
  finish_together(group, sequence);
  return true;
}

}  // namespace

// What fits into a slot of the ring may lie there already: see Contribution::fill_first_slot.
bool is_worth_copying_across(const Group& group, std::size_t bytes) {
  return group.size() == 2 && bytes > group.thresholds().piece && bytes >= group.thresholds().cross;
}

bool copy_across(Group& group, std::uint64_t sequence, int from, const Buffer& tensor, std::atomic<bool>& is_exposed) {
  check_agreement(group, sequence);  // fingerprints are not enough where ranks reach into each other's tensors
  const int other = 1 - group.rank();
  return group.rank() == from ? send_across(group, sequence, other, tensor)
                              : receive_across(group, sequence, other, tensor, is_exposed);
}

}  // namespace shim
