#include "platform/stall_warning.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace shim {
namespace {

std::atomic<double> limit{0};

}  // namespace

void set_stall_warning(double seconds) { limit.store(seconds); }

bool StallWarning::is_due(Clock::time_point now) {
  const double seconds = limit.load();
  if (given_ || seconds <= 0 || std::chrono::duration<double>(now - began_).count() < seconds) return false;
  given_ = true;
  return true;
}

void StallWarning::write(const std::string& who, const std::string& text, double timeout) {
  write_line(who + " has waited " + shown_seconds(limit.load()) + " " + text +
             "\nIt goes on waiting until the timeout, " + shown_seconds(timeout) + ".");
}

void StallWarning::write_line(const std::string& text) {
  const std::string line = "shim: " + text + "\n";
  // In one piece, and past Python, which another thread may be keeping to itself.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

std::string shown_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g s", seconds);
  return text;
}

}  // namespace shim
