// Prepared calls on their way: carried out by the thread that waits for them, or by the group's progress thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "collectives/operation.hpp"
#include "group/group.hpp"
#include "messages/point_to_point.hpp"

namespace shim {

class Progress;

// When a wait of so many seconds ends; a negative number, and one that clocks cannot hold, is never.
std::chrono::steady_clock::time_point deadline_after(double seconds);
// What a wait throws whose own timeout has passed.
Failure wait_timeout();

// One call. It is either waited for without being started, and then carried out by the waiting thread, or started and
// then carried out in the background. Once started it must stay alive until is_completed() or its Progress has stopped.
class Task {
 public:
  virtual ~Task() = default;
  virtual void start() = 0;
  // Returns when it is done; throws what ended it, Failure(timeout) after `timeout` seconds if that is not negative
  // (a started task goes on), or Interrupted.
  virtual void wait(double timeout) = 0;
  virtual bool is_completed() const = 0;
  virtual std::optional<Failure> failure() const = 0;  // what ended it, once completed
  virtual int source_rank() const { return -1; }       // of a completed receive
  virtual std::size_t bytes() const = 0;
  virtual Accesses accesses() = 0;
  virtual bool is_started() const = 0;
  // Where in the program it is started, to be set before that; null where nobody asks for it.
  virtual std::string* place() { return nullptr; }
};

class CollectiveTask final : public Task {
 public:
  CollectiveTask(Progress& progress, std::unique_ptr<Operation> operation)
      : progress_(progress), operation_(std::move(operation)) {}

  void start() override;
  void wait(double timeout) override;
  bool is_completed() const override { return state_.load() == State::completed; }
  std::optional<Failure> failure() const override;
  std::size_t bytes() const override { return operation_->bytes(); }
  Accesses accesses() override { return operation_->accesses(); }
  bool is_started() const override { return state_.load() != State::prepared; }
  std::string* place() override { return &place_; }

 private:
  friend class Progress;
  enum class State { prepared, started, completed };

  void rethrow() const;  // what ended it, if that was a failure

  Progress& progress_;
  std::unique_ptr<Operation> operation_;
  std::string place_;
  std::atomic<State> state_{State::prepared};
  std::optional<Failure> failure_;  // written before state_ becomes completed
};

class TransferTask final : public Task {
 public:
  TransferTask(Progress& progress, const TensorView& view, bool is_send, int peer, std::int64_t tag)
      : progress_(progress), transfer_(view, is_send, peer, tag) {}
  ~TransferTask() override;

  void start() override;
  void wait(double timeout) override;
  bool is_completed() const override { return transfer_.ended.load(); }
  std::optional<Failure> failure() const override;
  int source_rank() const override { return transfer_.source; }
  std::size_t bytes() const override { return transfer_.buffer.bytes(); }
  Accesses accesses() override { return transfer_.accesses(); }
  bool is_started() const override { return posted_; }

 private:
  void post();
  void end_with(const Failure& failure);

  Progress& progress_;
  Transfer transfer_;
  bool posted_ = false;
};

}  // namespace shim
