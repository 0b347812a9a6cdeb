// Which processors the ranks are on, and how they wait that have less of them than they are: who waits lets the others
// run, above all those it waits for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "group/shared_layout.hpp"

namespace shim {

// Which rank runs where, as far as it told when it last arrived or waited, and how this rank finds a place among them.
// Any thread of the rank may use it.
class Crowd {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr int least_yields = 4;
  static constexpr int most_yields = 16;

  // `lines` are those of the ranks; of those on other hosts none tells a processor.
  Crowd(const std::vector<StatusLine*>& lines, int rank) : lines_(lines), rank_(rank) {}

  // Says where this rank runs.
  void tell_processor();
  // Whether one of the ranks for which is_awaited(rank) was last seen on this rank's processor, where it does not run
  // as long as this one does.
  bool keeps_from_running(const std::function<bool(int)>& is_awaited) const;
  // Moves this thread to where less ranks are, if they are spread unevenly and it has not looked for a while: the
  // kernel is slow to. Afterwards the thread may run where it might before.
  void spread_out(Clock::time_point now);
  // Which processor this rank should move to, of those it may run on; -1 when it should stay.
  int better_processor() const;

  // How often a wait should yield before it sleeps. Where that has been in vain lately, seldom: the kernel does not let
  // a rank yield to one of another session or container.
  int worthwhile_yields() const { return yields_.load(std::memory_order_relaxed); }
  void note_wait(bool in_vain);

 private:
  int size() const { return static_cast<int>(lines_.size()); }
  std::atomic<std::int32_t>& processor(int rank) const { return lines_[static_cast<std::size_t>(rank)]->processor; }

  const std::vector<StatusLine*>& lines_;
  int rank_;
  std::atomic<Clock::rep> next_look_{0};
  std::atomic<int> yields_{most_yields};
};

// The turns of one wait in a crowd.
class CrowdTurns {
 public:
  explicit CrowdTurns(Crowd& crowd) : crowd_(crowd), most_(crowd.worthwhile_yields()) { crowd_.tell_processor(); }
  ~CrowdTurns() {
    if (yields_ > 0) crowd_.note_wait(yields_ == most_);
  }
  CrowdTurns(const CrowdTurns&) = delete;
  CrowdTurns& operator=(const CrowdTurns&) = delete;

  // Lets the others run, or looks on for a moment when those for which is_awaited(rank) run elsewhere. False, and
  // nothing done, when the wait takes so long that it is better to sleep.
  bool take(const std::function<bool(int)>& is_awaited);

 private:
  Crowd& crowd_;
  int most_;
  int looks_ = 0;
  int yields_ = 0;
  bool has_looked_ = false;
};

}  // namespace shim
