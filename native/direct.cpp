#include "direct.hpp"

#include <algorithm>

#include "reach.hpp"

namespace shim {
namespace {

constexpr std::size_t never = ~std::size_t{0};

// From how many bytes of the largest part on a way is faster than the rings; see docs/performance.md.
struct Limits {
  std::size_t mapped = never;
  std::size_t copied = never;
};

constexpr std::size_t kb = 1024;
constexpr std::size_t mb = 1024 * kb;

Limits limits_of(OperationKind kind, int size) {
  const auto ranks = static_cast<std::size_t>(size);
  switch (kind) {
    case OperationKind::all_reduce:
    case OperationKind::reduce:
      return {16 * kb, never};
    case OperationKind::all_gather:
    case OperationKind::broadcast:
    case OperationKind::gather:
      return {16 * kb, 8 * mb};
    case OperationKind::all_to_all:
    case OperationKind::scatter:
      return {16 * kb / ranks, 8 * mb / ranks};
    case OperationKind::reduce_scatter:
      return {16 * kb / ranks, never};
    default:
      return {};
  }
}

constexpr std::size_t least_to_lend = 16 * kb;

bool is_rooted_at_sender(OperationKind kind) {
  return kind == OperationKind::broadcast || kind == OperationKind::scatter;
}

bool is_rooted_at_receiver(OperationKind kind) {
  return kind == OperationKind::reduce || kind == OperationKind::gather;
}

bool has_parts(OperationKind kind) {
  return kind == OperationKind::all_to_all || kind == OperationKind::scatter || kind == OperationKind::reduce_scatter;
}

}  // namespace

Loan::Loan(Group& group, std::uint64_t sequence) : group_(group), places_(group.places(group.rank(), sequence)) {
  std::fill_n(places_, std::max(group.size(), 2), Place{});
  group_.reach().begin_lending();
}

void Loan::add(std::size_t index, const Part& part) {
  const unsigned flags = group_.reach().lend(part.data, part.bytes, places_[index]);
  all_ &= flags;
  any_ |= flags;
}

void Loan::add_parts(const Parts& parts, int own) {
  for (int rank = 0; rank < group_.size(); ++rank)
    if (rank != own) add(static_cast<std::size_t>(rank), parts[rank]);
}

std::uint16_t Loan::flags() const {
  const unsigned all = all_ & (offered | lent);
  return static_cast<std::uint16_t>(all | (all & lent ? any_ & lent_now : 0));
}

bool is_worth_lending(const Group& group, std::size_t bytes) { return group.size() > 1 && bytes >= least_to_lend; }

DirectAccess::DirectAccess(Group& group, const Agreement& agreement, const CallDescriptor& call)
    : group_(group), call_(call), sequence_(agreement.sequence) {
  if ((agreement.reach_of_all & offered) == 0) return;
  const Limits limits = limits_of(call.kind, group.size());
  Reach& reach = group.reach();
  if ((agreement.reach_of_all & lent) != 0 && agreement.largest >= limits.mapped && reach.mapping_works.value_or(true)) {
    const bool is_new = (agreement.reach_of_any & lent_now) != 0 || !reach.mapping_works;
    if (is_new) reach.mapping_works = agree_that(map_all(), 0);
    if (is_new && *reach.mapping_works) reach.confirm_lent();
    if (*reach.mapping_works) way_ = Way::mapped;
  }
  if (way_ == Way::rings && agreement.largest >= limits.copied) {
    if (!reach.copying_works) reach.copying_works = agree_that(reach.can_copy(), 1);
    if (*reach.copying_works) way_ = Way::copied;
  }
}

bool DirectAccess::reads(int reader, int owner) const {
  if (reader == owner) return false;
  if (is_rooted_at_sender(call_.kind)) return owner == call_.root;
  if (is_rooted_at_receiver(call_.kind)) return reader == call_.root;
  return true;
}

// All of everybody's, also what only others read this time: the next operation with this memory does not ask again.
bool DirectAccess::map_all() const {
  const std::size_t count = has_parts(call_.kind)                      ? static_cast<std::size_t>(group_.size())
                            : call_.kind == OperationKind::all_reduce ? 2
                                                                      : 1;
  for (int peer = 0; peer < group_.size(); ++peer) {
    if (peer == group_.rank()) continue;
    for (std::size_t index = 0; index < count; ++index) {
      const Place& place = group_.places(peer, sequence_)[index];
      if (place.allocation != 0 && group_.reach().map(peer, place) == nullptr) return false;
    }
  }
  return true;
}

bool DirectAccess::agree_that(bool reached, unsigned attempt) const {
  const std::uint64_t number = 2 * sequence_ + attempt;
  DirectLine& mine = group_.direct(group_.rank());
  if (reached) mine.reached.store(number);
  mine.tried.exchange(number);
  group_.ring_bells();
  const auto has_tried = [this, number](int rank) { return group_.direct(rank).tried.load() >= number; };
  bool all = reached;
  for (int peer = 0; peer < group_.size(); ++peer) {
    if (peer == group_.rank()) continue;
    group_.wait_for(peer, has_tried);
    all = all && group_.direct(peer).reached.load() == number;
  }
  return all;
}

std::byte* DirectAccess::at(int peer, std::size_t index) const {
  std::byte* data = group_.reach().map(peer, group_.places(peer, sequence_)[index]);
  if (data == nullptr) group_.fail(Failure(FailureKind::engine, "shared memory of rank " + std::to_string(peer) +
                                                       " is not mapped\nThe group can no longer be used."));
  return data;
}

std::vector<const std::byte*> DirectAccess::inputs(std::size_t index, const std::byte* own) const {
  std::vector<const std::byte*> all;
  for (int rank = 0; rank < group_.size(); ++rank) all.push_back(rank == group_.rank() ? own : at(rank, index));
  return all;
}

void DirectAccess::copy(int peer, std::size_t index, const Part& to, const OutputCopy& copy_out) const {
  if (to.bytes == 0) return;
  if (way_ == Way::mapped)
    copy_out(to.data, at(peer, index), to.bytes);
  else
    group_.reach().copy(peer, group_.places(peer, sequence_)[index].address, to.data, to.bytes);
}

void DirectAccess::finish() const {
  DirectLine& mine = group_.direct(group_.rank());
  // What was read must have been read before the ranks are looked at: one that gives up says so before its caller can
  // write to its tensors again.
  mine.finished.fetch_or(0);
  for (int peer = 0; peer < group_.size(); ++peer) {
    if (!reads(group_.rank(), peer)) continue;
    way_ == Way::copied ? group_.reach().check_present(peer) : group_.check_present(peer);
  }
  mine.finished.exchange(sequence_);
  group_.ring_bells();
  const auto has_finished = [this](int rank) { return group_.direct(rank).finished.load() >= sequence_; };
  for (int peer = 0; peer < group_.size(); ++peer)
    if (reads(peer, group_.rank())) group_.wait_for(peer, has_finished);
}

}  // namespace shim
