// Streams and events of the fake CUDA driver.
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "processes.hpp"

namespace fake {

// Does what it is given in order, on a thread of its own.
class Stream {
 public:
  explicit Stream(int device) : device(device), thread_([this] { run(); }) { thread_.detach(); }

  void put(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    ++given_;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    const std::uint64_t until = given_;
    changed_.wait(lock, [&] { return done_ >= until; });
  }
  bool is_idle() {
    const std::lock_guard lock(mutex_);
    return done_ == given_;
  }

  const int device;

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

// How far an event has come. Other processes share that of one that is made for them.
struct Progress {
  std::atomic<std::uint64_t> recorded, reached;
  std::atomic<int> process;  // that has recorded it
};

class Event {
 public:
  // Of this process alone.
  Event() = default;
  // In memory that a file keeps, which has the number `file` in the process that made it; 0 in others.
  Event(Progress* shared, int file) : file(file), progress_(shared), is_shared_(true) {}

  std::uint64_t record() {
    progress_->process = static_cast<int>(getpid());
    return ++progress_->recorded;
  }
  std::uint64_t recorded() const { return progress_->recorded; }
  void reach(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    progress_->reached = number;
    changed_.notify_all();
  }
  bool is_reached() const { return progress_->reached >= progress_->recorded; }
  void wait_for(std::uint64_t number) {
    if (is_shared_) {  // a process that has died does not keep others
      while (progress_->reached < number && is_alive(progress_->process)) usleep(50);
      return;
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return progress_->reached >= number; });
  }

  const int file = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Progress own_{};
  Progress* const progress_ = &own_;
  const bool is_shared_ = false;
};

}  // namespace fake
