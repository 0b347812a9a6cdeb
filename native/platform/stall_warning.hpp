// What a rank says on standard error while it waits for others that may never come.
#pragma once

#include <chrono>
#include <string>

namespace shim {

// After how many seconds of one wait a rank warns; 0, as at first, is never.
void set_stall_warning(double seconds);

// Says once that a wait which began with this object is taking long.
class StallWarning {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StallWarning(Clock::time_point began) : began_(began) {}

  // Whether it is time to warn: true at most once.
  bool is_due(Clock::time_point now);
  // Writes "shim: <who> has waited 10 s <text>" and that it goes on until the `timeout`, in seconds.
  static void write(const std::string& who, const std::string& text, double timeout);
  // Writes "shim: <text>".
  static void write_line(const std::string& text);

 private:
  Clock::time_point began_;
  bool given_ = false;
};

// "10 s", "0.5 s".
std::string shown_seconds(double seconds);

}  // namespace shim
