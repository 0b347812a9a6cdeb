// How a rank leaves a group or fails in it, and whom the others name for it.
#include <cstring>
#include <utility>

#include "group/descriptions.hpp"
#include "group/group.hpp"
#include "platform/steady_time.hpp"

namespace shim {
namespace {

// Its first line, which may end without a zero.
void write_reason(StatusLine& line, std::string_view why) {
  copy_fitting(why.substr(0, why.find('\n')), line.reason, sizeof(line.reason));
}

std::string reason_of(const StatusLine& line) { return {line.reason, ::strnlen(line.reason, sizeof(line.reason))}; }

}  // namespace

void Group::mark_lost(int rank, std::string how) {
  if (peers_.note_end(rank, std::move(how))) ring_bell(rank_);
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
    failed_at_ = steady_ns();
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
  const std::string since = std::to_string((steady_ns() - failed_at_) / 1'000'000);
  return {failure_->kind, "the group was given up " + since + " ms ago, as was said then: " + failure_->what(),
          failure_->ranks};
}

Failure Group::lost_failure(int rank, const Describe& what) const {
  const int culprit = peers_.culprit_behind(rank);
  peers_.wait_for_word_of(culprit);
  const std::string words = culprit == rank ? "" : peers_.words_of(rank, culprit);  // which tell where it was, too
  const std::string reporter = culprit == rank ? "" : ", as " + rank_label(*this, rank) + " reports" + words;
  const std::string where = what            ? ", which ended " + what()
                            : words.empty() ? " at operation " + std::to_string(sequence) + " of the group"
                                            : "";
  const std::string waited = noted_call(*this, culprit);
  const std::string calls = last_calls(*this, culprit);
  return Failure(FailureKind::peer_lost,
                 rank_label(*this, culprit) + peers_.ending_of(culprit) + (what ? reporter + where : where + reporter) +
                     (waited.empty() ? "" : "\nIt was in " + waited + ".") +
                     (calls.empty() ? "" : "\nIts last calls: " + calls + ".") + "\nThe group can no longer be used.",
                 {culprit});
}

}  // namespace shim
