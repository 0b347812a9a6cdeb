// A wait that is taking long: what the others can read of it, and what its rank says of it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "platform/failure.hpp"
#include "platform/stall_warning.hpp"

namespace shim {

class Group;

// One wait of the calling thread, of a call that somebody is interested in: WaitHooks say who.
class LongWait {
 public:
  using Clock = std::chrono::steady_clock;

  // What is given is kept by reference, see Group::wait_for.
  LongWait(Group& group, Clock::time_point began, const std::function<bool(int)>& ready_for,
           const std::function<std::string()>& what)
      : group_(group), began_(began), warning_(began), ready_for_(ready_for), what_(what) {}
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

  // Called now and then while it goes on: leaves a note to the others, later warns, each once.
  void go_on(Clock::time_point now);
  // What ends it at the group's timeout.
  Failure timeout();

 private:
  std::string subject() const;
  std::vector<int> missing() const;
  bool has_come(int rank) const;
  std::vector<int> to_be_asked() const;
  std::string names_of(const std::vector<int>& ranks) const;
  void leave_note();
  void warn() const;

  Group& group_;
  Clock::time_point began_;
  StallWarning warning_;
  const std::function<bool(int)>& ready_for_;
  const std::function<std::string()>& what_;
  bool tried_note_ = false;
  bool has_note_ = false;
};

// Carried out by reports/absence_report.cpp, as it asks the other ranks' processes and so stands above the group.
// Lines that each begin with a newline: of every rank what it waits for, or where it is in its program, and its last
// calls. Those of `asked` that have left no note are asked; the others have arrived. The last line is of processes that
// wait for each other in a circle, where there are some. All that is asked takes up to a second together.
std::string report_of(const Group& group, const std::vector<int>& asked);

}  // namespace shim
