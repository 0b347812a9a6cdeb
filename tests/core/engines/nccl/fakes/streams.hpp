// Streams and events of the fake CUDA driver.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace fake {

enum class Kind { legacy, blocking, non_blocking };

// Does what it is given in order, on a thread of its own. ``driver()`` orders it with the legacy stream, where it
// blocks.
class Stream {
 public:
  Stream(int device, Kind kind) : device(device), kind(kind), thread_([this] { run(); }) { thread_.detach(); }

  // What is put here while a graph is captured becomes part of it, and is not done.
  void put(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (is_capturing) return;
    work_.push_back(std::move(work));
    ++given_;
    changed_.notify_all();
  }
  void wait() { wait_for(given()); }
  void wait_for(std::uint64_t until) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= until; });
  }
  std::uint64_t given() {
    const std::lock_guard lock(mutex_);
    return given_;
  }
  bool is_idle() {
    const std::lock_guard lock(mutex_);
    return done_ == given_;
  }

  const int device;
  const Kind kind;
  std::atomic<bool> is_capturing{false};

 private:
  void run() {
    for (;;) {
      std::function<void()> next;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !work_.empty(); });
        next = std::move(work_.front());
        work_.pop_front();
      }
      next();
      const std::lock_guard lock(mutex_);
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::uint64_t given_ = 0, done_ = 0;
  std::thread thread_;
};

struct Event {
  explicit Event(int device) : device(device) {}

  const int device;
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0, reached = 0;
  bool is_captured = false;  // recorded on a stream that captured: it is no point in time

  void reach(std::uint64_t number) {
    const std::lock_guard lock(mutex);
    reached = number;
    changed.notify_all();
  }
  void wait_for(std::uint64_t number) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= number; });
  }
};

}  // namespace fake
