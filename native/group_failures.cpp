// How a group fails on a rank, and whom the others name for it.
#include <chrono>
#include <cstring>

#include "group.hpp"

namespace shim {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

void Group::mark_lost(int rank) {
  lost_[static_cast<std::size_t>(rank)].store(now_ns());
  ring_bell(rank_);
}

void Group::check_present(int rank) {
  if (is_gone(rank)) fail(lost_failure(rank, {}));
}

void Group::record(const Failure& failure) {
  {
    const std::lock_guard lock(failing_);
    if (failed_.load()) return;
    failure_ = std::make_unique<Failure>(failure);
    StatusLine& mine = status(rank_);
    const bool peer_lost = failure.kind == FailureKind::peer_lost && !failure.ranks.empty();
    mine.cause.store(peer_lost ? failure.ranks.front() : -1);
    first_line(failure.what()).copy(mine.reason, sizeof(mine.reason));
    RankState active = RankState::active;
    mine.state.compare_exchange_strong(active, RankState::failed);
    failed_.store(true, std::memory_order_release);
  }
  ring_bells();
}

void Group::fail(const Failure& failure) {
  record(failure);
  throw failure;
}

bool Group::has_died(int rank) const {
  return lost_[static_cast<std::size_t>(rank)].load() != 0 && status(rank).state.load() == RankState::active;
}

// Of the ranks that are gone and not ready, the one that went for a reason of its own, as far as can be told: whoever
// died first, else who failed; those that left may have done so because of either. -1 when there is none.
int Group::first_missed(const ReadyTest& ready_for) const {
  int first = -1;
  const auto is_before = [this](int a, int b) {
    if (has_died(a) != has_died(b)) return has_died(a);
    if (has_died(a)) return lost_[static_cast<std::size_t>(a)].load() < lost_[static_cast<std::size_t>(b)].load();
    return status(a).state.load() == RankState::failed && status(b).state.load() == RankState::left;
  };
  for (int rank = 0; rank < size(); ++rank)
    // In this order: what a rank wrote before it went is still good.
    if (rank != rank_ && is_gone(rank) && !ready_for(rank) && (first < 0 || is_before(rank, first))) first = rank;
  return first;
}

// The rank whose loss made `rank` fail, and the one whose loss made that one fail, and so on.
int Group::culprit_behind(int rank) const {
  for (int steps = 0; steps < size() && status(rank).state.load() == RankState::failed; ++steps) {
    const int cause = status(rank).cause.load();
    if (cause < 0 || cause >= size() || cause == rank_) break;
    rank = cause;
  }
  return rank;
}

std::string Group::ending_of(int rank) const {
  const StatusLine& line = status(rank);
  switch (line.state.load()) {
    case RankState::left:
      return " left the group";
    case RankState::failed:
      if (const std::string reason(line.reason, ::strnlen(line.reason, sizeof(line.reason))); !reason.empty())
        return " gave the group up: " + reason;
      return " gave the group up";
    case RankState::active:
      break;
  }
  const std::int64_t since = lost_[static_cast<std::size_t>(rank)].load();
  return since == 0 ? " was lost" : "'s process died " + std::to_string((now_ns() - since) / 1'000'000) + " ms ago";
}

Failure Group::lost_failure(int rank, const Describe& what) const {
  const int culprit = culprit_behind(rank);
  const std::string reporter = culprit == rank ? "" : ", as " + rank_label(rank) + " reports";
  const std::string where =
      what ? ", which ended " + what() : " at operation " + std::to_string(sequence) + " of the group";
  return Failure(FailureKind::peer_lost,
                 rank_label(culprit) + ending_of(culprit) + reporter + where + "\nThe group can no longer be used.",
                 {culprit});
}

std::string Group::rank_label(int rank) const {
  std::string label = "rank " + std::to_string(rank);
  if (world_rank(rank) != rank) label += " (rank " + std::to_string(world_rank(rank)) + " of the world)";
  return label;
}

}  // namespace shim
