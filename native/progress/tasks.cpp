#include "progress/tasks.hpp"

#include <exception>
#include <string>

#include "progress/progress.hpp"

namespace shim {

using Clock = std::chrono::steady_clock;

Clock::time_point deadline_after(double seconds) {
  if (seconds < 0 || seconds > 1e9) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

Failure wait_timeout() {
  return Failure(FailureKind::timeout,
                 "the wait's own timeout has passed\nThe operation goes on, and can be waited for again.");
}

void CollectiveTask::start() {
  if (state_.load() == State::prepared) progress_.enqueue(*this);
}

void CollectiveTask::wait(double timeout) {
  if (is_completed()) return rethrow();
  progress_.group().check_this_process();
  if (state_.load() == State::prepared && timeout < 0) return progress_.run_or_enqueue(*this);
  start();  // a wait that may end before the operation cannot carry it out
  progress_.wait_completed(*this, timeout);
}

void CollectiveTask::rethrow() const {
  if (failure_) throw *failure_;
}

std::optional<Failure> CollectiveTask::failure() const { return is_completed() ? failure_ : std::nullopt; }

TransferTask::~TransferTask() {
  if (posted_ && !transfer_.ended && progress_.group().is_of_this_process()) progress_.messages().withdraw(transfer_);
}

void TransferTask::post() {
  progress_.group().check_usable();
  transfer_.prepare();
  posted_ = true;
  try {
    progress_.messages().post(transfer_);
  } catch (const Failure& failure) {
    end_with(failure);
    throw;
  } catch (const std::exception& error) {  // no memory
    end_with(Failure(FailureKind::engine, std::string("the message cannot be begun: ") + error.what()));
    throw;
  }
}

void TransferTask::end_with(const Failure& failure) {
  progress_.messages().withdraw(transfer_);
  if (!transfer_.failure) transfer_.failure = failure;
}

void TransferTask::start() {
  if (posted_) return;
  post();
  if (transfer_.ended) return;
  try {
    progress_.drive_in_background();
  } catch (const Failure& failure) {
    end_with(failure);
    throw;
  }
}

void TransferTask::wait(double timeout) {
  if (!posted_) post();
  if (!transfer_.ended) {
    Group& group = progress_.group();
    group.check_this_process();
    const auto deadline = deadline_after(timeout);
    const bool from_any = transfer_.peer == Transfer::any_rank;
    const auto is_late = [&] { return deadline != Clock::time_point::max() && Clock::now() > deadline; };
    std::uint64_t before = 0;  // each piece that moves begins the group's timeout again
    const auto is_ready = [&](int rank) {
      // Asked of a rank that is gone: what it sent before it went is still to be received.
      if (rank != group.rank()) progress_.messages().advance();
      if (transfer_.ended || is_late()) return true;
      if (rank == group.rank()) return transfer_.moved.load(std::memory_order_relaxed) != before;
      // Another rank than the peer may go without harm; any of them may be the one, so none is missed until all are.
      return from_any ? !group.peers().are_all_gone() : rank != transfer_.peer;
    };
    try {
      InterruptChecks checks(group);
      while (!transfer_.ended && !is_late()) {
        before = transfer_.moved.load(std::memory_order_relaxed);
        group.wait_for(group.rank(), is_ready, [&] { return transfer_.describe(group); });
        if (!transfer_.ended) checks.check();
      }
    } catch (const Failure& failure) {
      end_with(failure);
    } catch (const Interrupted&) {
      progress_.messages().withdraw(transfer_);
      throw;
    }
    if (!transfer_.ended) throw wait_timeout();
  }
  if (transfer_.failure) throw *transfer_.failure;
}

std::optional<Failure> TransferTask::failure() const { return is_completed() ? transfer_.failure : std::nullopt; }

}  // namespace shim
