// What a rank that waits to make a group tells the world of it, and whether it waits in vain.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "group/group.hpp"
#include "meeting/rendezvous.hpp"
#include "platform/failure.hpp"
#include "platform/stall_warning.hpp"

namespace shim {

// One wait of the calling thread at the `meeting` of some ranks of the `world`. These and its hooks are kept by
// reference.
class MeetingWatch {
 public:
  using Clock = std::chrono::steady_clock;

  MeetingWatch(Group& world, const Meeting& meeting, WaitHooks& hooks);
  ~MeetingWatch();
  MeetingWatch(const MeetingWatch&) = delete;
  MeetingWatch& operator=(const MeetingWatch&) = delete;

  // Called a few times a second, after the hooks' check_interrupted(). Leaves a note to the others, once it takes long.
  // Throws failure() where this rank waits, with others between them or not, for ranks that wait for each other in a
  // circle, at meetings and in operations of the world, and where each of these processes has but the one thread that
  // waits: then nothing else can end it. All of those at meetings throw it, half a second after they have seen enough.
  // Warns of any other circle when the wait has become a stall.
  void look();
  // Whether there is such a circle.
  bool is_proved() const { return is_proved_; }
  // Whether a rank of it waits for this one in an operation of the world, and must be told.
  bool is_awaited_in_world() const { return is_awaited_in_world_; }
  // "\n" and the circle in which this process waits now, whether another thread may end it or not; else empty.
  std::string circle_now() const;
  // Of kind mismatch: who waits for what.
  Failure failure() const { return Failure(FailureKind::mismatch, text_); }

 private:
  void leave_note();
  std::vector<int> held_circle() const;
  std::string told(const std::vector<int>& ranks) const;

  Group& world_;
  const Meeting& meeting_;
  WaitHooks& hooks_;
  Clock::time_point began_;
  StallWarning warning_;
  Clock::time_point next_look_;
  bool tried_note_ = false;
  bool has_note_ = false;
  std::vector<std::pair<int, std::int64_t>> seen_;  // the circle at the last look, and since when each of it waits
  Clock::time_point seen_since_;
  bool is_proved_ = false;
  bool is_awaited_in_world_ = false;
  std::string text_;
};

}  // namespace shim
