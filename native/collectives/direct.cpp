#include "collectives/direct.hpp"

#include <algorithm>

#include "group/descriptions.hpp"
#include "group/loans.hpp"
#include "platform/fault_points.hpp"

namespace shim {
namespace {

// A place for each rank, and for the input and the output of an all_reduce.
int count_of_places(const Group& group) { return std::max(group.size(), 2); }

}  // namespace

Loan::Loan(Group& group, std::uint64_t sequence) : group_(group), places_(group.places(group.rank(), sequence)) {
  std::fill_n(places_, count_of_places(group), Place{});
  group.loans().begin();
}

void Loan::add(std::size_t index, const Part& part) {
  const unsigned flags = group_.loans().lend(part.data, part.bytes, places_[index]);
  all_ &= flags;
  any_ |= flags;
}

void Loan::add_parts(const Parts& parts, int own) {
  for (int rank = 0; rank < group_.size(); ++rank)
    if (rank != own) add(static_cast<std::size_t>(rank), parts[rank]);
}

std::uint16_t Loan::flags() const {
  return static_cast<std::uint16_t>((all_ & lent) != 0 ? lent | (any_ & lent_now) : 0);
}

// Below the threshold, waiting for each other in the end costs what the second copy does; see
// docs/performance_notebook.md.
bool is_worth_lending(const Group& group, std::size_t bytes) {
  return group.size() > 1 && bytes >= group.thresholds().lend;
}

DirectAccess::DirectAccess(Group& group, const Agreement& agreement) : group_(group), sequence_(agreement.sequence) {
  Loans& loans = group.loans();
  if ((agreement.loan_of_all & lent) == 0 || !loans.mapping_works.value_or(true)) return;
  if ((agreement.loan_of_any & lent_now) != 0 || !loans.mapping_works) {
    loans.mapping_works = agree_that_mapped(map_all());
    if (*loans.mapping_works)
      loans.confirm();
    else
      group.given.agreed = sequence_;
  }
  is_given_ = *loans.mapping_works;
}

// All places of everybody, also what only others need this time: the next operation with this memory does not ask
// again.
bool DirectAccess::map_all() const {
  for (int peer = 0; peer < group_.size(); ++peer) {
    if (peer == group_.rank()) continue;
    for (int index = 0; index < count_of_places(group_); ++index) {
      const Place& place = group_.places(peer, sequence_)[index];
      if (place.allocation != 0 && group_.loans().map(peer, place) == nullptr) return false;
    }
  }
  return true;
}

bool DirectAccess::agree_that_mapped(bool mapped) const {
  DirectLine& mine = group_.direct(group_.rank());
  if (mapped) mine.mapped.store(sequence_);
  mine.tried.exchange(sequence_);
  group_.ring_bells();
  const auto has_tried = [this](int rank) { return group_.direct(rank).tried.load() >= sequence_; };
  bool all = mapped;
  for (int peer = 0; peer < group_.size(); ++peer) {
    if (peer == group_.rank()) continue;
    group_.wait_for(peer, has_tried);
    all = all && group_.direct(peer).mapped.load() == sequence_;
  }
  return all;
}

std::vector<std::byte*> DirectAccess::tensors(std::size_t index, std::byte* own) const {
  std::vector<std::byte*> all;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const Place& place = group_.places(rank, sequence_)[index];
    const bool is_lent = rank != group_.rank() && place.allocation != 0;
    std::byte* data = rank == group_.rank() ? own : is_lent ? group_.loans().map(rank, place).get() : nullptr;
    if (is_lent && data == nullptr) {
      group_.check_present(rank);  // who gave up may have freed it since
      group_.fail(Failure(FailureKind::engine, "the shared memory of " + rank_label(group_, rank) +
                                                   " cannot be mapped again\nThe group can no longer be used."));
    }
    all.push_back(data);
  }
  return all;
}

void finish_together(Group& group, std::uint64_t sequence) {
  fault_point("in_direct");
  DirectLine& mine = group.direct(group.rank());
  // All has been read before the ranks are looked at: one that gives up says so before its caller can write to its
  // tensors again, and no rank leaves before it has seen this one finish.
  mine.finished.fetch_or(0);
  for (int peer = 0; peer < group.size(); ++peer)
    if (peer != group.rank()) group.check_present(peer);
  mine.finished.exchange(sequence);
  group.ring_bells();
  group.given.filled = 0;
  group.given.finished = sequence;
  const auto has_finished = [&](int rank) { return group.direct(rank).finished.load() >= sequence; };
  for (int peer = 0; peer < group.size(); ++peer)
    if (peer != group.rank()) group.wait_for(peer, has_finished);
}

}  // namespace shim
