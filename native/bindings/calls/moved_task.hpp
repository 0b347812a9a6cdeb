// A message that Python moves, in a group whose ranks share no memory.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include "bindings/calls/work.hpp"
#include "progress/tasks.hpp"

namespace shim::bindings {

// Has a `mover` send or receive the elements of one tensor: see shim.core.engines.network.messages.Mover. The waiting
// is done here, as for a message in shared memory. Used with the interpreter's lock, but for wait().
class MovedTask final : public Task {
 public:
  // `view` is of `tensor`, whose memory stays until the transfer has ended. `peer` may be Transfer::any_rank.
  MovedTask(std::shared_ptr<Member> member, const TensorView& view, nanobind::object tensor, bool is_send, int peer,
            nanobind::object mover);
  ~MovedTask() override;

  void start() override;
  void wait(double timeout) override;
  bool is_completed() const override;
  std::optional<Failure> failure() const override;
  int source_rank() const override { return source_; }
  std::size_t bytes() const override { return buffer_->bytes(); }
  Accesses accesses() override { return is_send_ ? Accesses{{buffer_.get()}, {}} : Accesses{{}, {buffer_.get()}}; }
  bool is_started() const override { return is_started_; }

 private:
  // What the mover ends, perhaps after nobody asks any more.
  struct End {
    explicit End(std::shared_ptr<Member> member) : member(std::move(member)) {}
    std::shared_ptr<Member> member;
    std::atomic<bool> has_come{false};
  };

  bool may_miss(int rank);  // one that is gone, of which nothing comes any more
  void conclude() const;    // once: brings what came to the tensor
  void withdraw();

  std::shared_ptr<End> end_;
  Group& group_;
  std::shared_ptr<Buffer> buffer_;
  nanobind::object tensor_;
  Dtype dtype_;
  bool is_send_;
  int peer_;
  nanobind::object mover_;
  bool is_started_ = false;
  std::optional<std::chrono::steady_clock::time_point> seen_gone_;
  mutable bool is_concluded_ = false;
  mutable std::optional<Failure> failure_;
  mutable int source_ = -1;
};

}  // namespace shim::bindings
