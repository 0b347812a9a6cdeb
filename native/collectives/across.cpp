#include "across.hpp"

#include <optional>

#include "../cross_copy.hpp"
#include "../direct.hpp"
#include "../loans.hpp"

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
    while (true) switch (copy_.read_next(sequence)) {
        case CrossCopy::Step::done:
          return;
        case CrossCopy::Step::moved:
          break;
        case CrossCopy::Step::waits:
          group_.wait_for(from_, [this](int rank) { return rank != from_ || copy_.may_go_on(); });
          break;
        case CrossCopy::Step::failed:
          group_.fail(Failure(FailureKind::engine, "the tensor of rank " + std::to_string(from_) +
                                                       " cannot be copied\nThe group can no longer be used."));
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
  CrossCopy copy(theirs.copy, group.loans().process_of(to), tensor.data(), theirs.address.load(), tensor.bytes());
  while (copy.write_next() == CrossCopy::Step::moved) group.ring_bell(to);
  finish_together(group, sequence);
  return true;
}

bool receive_across(Group& group, std::uint64_t sequence, int from, const Buffer& tensor,
                    std::atomic<bool>& is_exposed) {
  CrossLine& mine = group.cross(group.rank());
  CrossLine& theirs = group.cross(from);
  group.wait_for(from, [&](int rank) { return rank != from || theirs.offered.load() >= sequence; });
  const CrossCopy copy(mine.copy, group.loans().process_of(from), tensor.data(), theirs.address.load(), tensor.bytes());
  std::optional<Receiving> receiving;
  if (!tensor.goes_through_copy() && copy.can_read()) {
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

// Above what the ranks arrive with and what they may have put into the rings before.
bool is_worth_copying_across(const Group& group, std::size_t bytes) {
  return group.size() == 2 && bytes > group.thresholds().piece && bytes >= group.thresholds().offer;
}

bool copy_across(Group& group, std::uint64_t sequence, int from, const Buffer& tensor, std::atomic<bool>& is_exposed) {
  const int other = 1 - group.rank();
  return group.rank() == from ? send_across(group, sequence, other, tensor)
                              : receive_across(group, sequence, other, tensor, is_exposed);
}

}  // namespace shim
