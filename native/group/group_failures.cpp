// How a rank leaves a group or fails in it, and whom the others name for it.
#include <cctype>
#include <chrono>
#include <cstring>
#include <thread>

#include "group/call_description.hpp"
#include "group/group.hpp"
#include "group/rank_notes.hpp"

namespace shim {
namespace {

constexpr auto patience_with_watcher = std::chrono::milliseconds(20);

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Its first line, which may end without a zero.
void write_reason(StatusLine& line, std::string_view why) {
  copy_fitting(why.substr(0, why.find('\n')), line.reason, sizeof(line.reason));
}

std::string reason_of(const StatusLine& line) { return {line.reason, ::strnlen(line.reason, sizeof(line.reason))}; }

}  // namespace

void Group::mark_lost(int rank, std::string how) {
  Loss& loss = losses_[static_cast<std::size_t>(rank)];
  if (loss.since.load() != 0) return;
  loss.how = std::move(how);
  loss.since.store(now_ns());
  ring_bell(rank_);
}

void Group::leave(const std::string& why) {
  if (!is_of_this_process() || left_.exchange(true)) return;
  {
    const std::lock_guard lock(failing_);
    StatusLine& mine = status(rank_);
    if (!failed_.load()) write_reason(mine, why);
    RankState active = RankState::active;
    mine.state.compare_exchange_strong(active, RankState::left);
    mine.has_left.store(1);
  }
  ring_bells();
  tell_carrier();
}

void Group::tell_carrier() {
  if (carrier == nullptr) return;
  const StatusLine& mine = status(rank_);
  const bool is_late = failed_.load() && failure_->kind == FailureKind::timeout;
  carrier->ended(mine.state.load(), mine.cause.load(), reason_of(mine), mine.has_left.load() != 0, is_late);
}

void Group::take_ending(int rank, RankState state, int cause, std::string_view reason, bool has_left) {
  StatusLine& theirs = status(rank);
  theirs.cause.store(cause);
  write_reason(theirs, reason);
  theirs.state.store(state);
  theirs.has_left.store(has_left ? 1 : 0);
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
    failed_at_ = now_ns();
    StatusLine& mine = status(rank_);
    const bool peer_lost = failure.kind == FailureKind::peer_lost && !failure.ranks.empty();
    mine.cause.store(peer_lost ? failure.ranks.front() : -1);
    write_reason(mine, failure.what());
    RankState active = RankState::active;
    mine.state.compare_exchange_strong(active, RankState::failed);
    failed_.store(true, std::memory_order_release);
  }
  ring_bells();
  tell_carrier();
}

void Group::fail(const Failure& failure) {
  record(failure);
  throw failure;
}

Failure Group::later_failure() const {
  const std::string since = std::to_string((now_ns() - failed_at_) / 1'000'000);
  return {failure_->kind, "the group was given up " + since + " ms ago, as was said then: " + failure_->what(),
          failure_->ranks};
}

bool Group::has_died(int rank) const {
  return losses_[static_cast<std::size_t>(rank)].since.load() != 0 && status(rank).state.load() == RankState::active;
}

// Of the ranks that are gone and not ready, the one that went for a reason of its own, as far as can be told: whoever
// died first, else who failed; those that left may have done so because of either. -1 when there is none.
int Group::first_missed(const ReadyTest& ready_for) const {
  int first = -1;
  const auto died_at = [this](int rank) { return losses_[static_cast<std::size_t>(rank)].since.load(); };
  const auto is_before = [&](int a, int b) {
    if (has_died(a) != has_died(b)) return has_died(a);
    if (has_died(a)) return died_at(a) < died_at(b);
    return status(a).state.load() == RankState::failed && status(b).state.load() == RankState::left;
  };
  for (int rank = 0; rank < size(); ++rank)
    // In this order: what a rank wrote before it went is still good.
    if (rank != rank_ && is_gone(rank) && !ready_for(rank) && (first < 0 || is_before(rank, first))) first = rank;
  return first;
}

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
  const auto reason = [&line] {
    const std::string text = reason_of(line);
    return text.empty() ? text : " (" + text + ")";
  };
  switch (line.state.load()) {
    case RankState::left:
      return " left the group" + reason();
    case RankState::failed:
      return " gave the group up" + reason();
    case RankState::active:
      break;
  }
  const Loss& loss = losses_[static_cast<std::size_t>(rank)];
  const std::int64_t since = loss.since.load();
  if (since == 0) return " was lost";
  if (loss.how.starts_with("'s ")) return loss.how;  // of a rank on another host, with where that is
  const bool ends_in_number = !loss.how.empty() && std::isdigit(static_cast<unsigned char>(loss.how.back())) != 0;
  return "'s process (pid " + std::to_string(note(rank).process.load()) + ") " +
         (loss.how.empty() ? "died" : loss.how) + (ends_in_number ? ", " : " ") +
         std::to_string((now_ns() - since) / 1'000'000) + " ms ago";
}

// Another rank may have heard of a death a little earlier, and say so before this process's own watcher knows how it
// was.
void Group::wait_for_word_of(int rank) const {
  const auto until = std::chrono::steady_clock::now() + patience_with_watcher;
  while (losses_[static_cast<std::size_t>(rank)].since.load() == 0 && status(rank).state.load() == RankState::active &&
         std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

// What `reporter` knows of how `lost` went, where this process does not.
std::string Group::words_of(int reporter, int lost) const {
  if (losses_[static_cast<std::size_t>(lost)].since.load() != 0 || status(lost).state.load() != RankState::active)
    return {};
  const std::string words = reason_of(status(reporter));
  return words.empty() ? words : ": " + words;
}

Failure Group::lost_failure(int rank, const Describe& what) const {
  const int culprit = culprit_behind(rank);
  wait_for_word_of(culprit);
  const std::string words = culprit == rank ? "" : words_of(rank, culprit);  // which tell where it was, too
  const std::string reporter = culprit == rank ? "" : ", as " + rank_label(*this, rank) + " reports" + words;
  const std::string where = what            ? ", which ended " + what()
                            : words.empty() ? " at operation " + std::to_string(sequence) + " of the group"
                                            : "";
  const std::string waited = noted_call(*this, culprit);
  const std::string calls = last_calls(*this, culprit);
  return Failure(FailureKind::peer_lost,
                 rank_label(*this, culprit) + ending_of(culprit) + (what ? reporter + where : where + reporter) +
                     (waited.empty() ? "" : "\nIt was in " + waited + ".") +
                     (calls.empty() ? "" : "\nIts last calls: " + calls + ".") + "\nThe group can no longer be used.",
                 {culprit});
}

}  // namespace shim
