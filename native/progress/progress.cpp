#include "progress/progress.hpp"
#include "messages/end_listener.hpp"

#include <algorithm>
#include <chrono>

#include "platform/threads.hpp"

namespace shim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto interrupt_slice = std::chrono::milliseconds(50);
constexpr auto last_words = std::chrono::milliseconds(500);  // for the others to arrive where a refusal is told
constexpr auto last_words_slice = std::chrono::milliseconds(10);

Failure destroyed(const Group& group) {
  return Failure(FailureKind::state, "group '" + group.name() + "' was destroyed before the operation ended");
}

}  // namespace

struct Progress::Turn {
  ~Turn() { progress.end_turn(); }
  Progress& progress;
};

bool Progress::run_now(Operation& operation) {
  if (!take_turn()) return false;
  const Turn turn{*this};
  operation.execute(group_);
  return true;
}

void Progress::run_or_enqueue(CollectiveTask& task) {
  if (!take_turn_or_queue({&task, {}})) return wait_completed(task, -1.0);
  task.state_.store(CollectiveTask::State::started);
  try {
    task.operation_->execute(group_);
  } catch (const Failure& failure) {
    task.failure_ = failure;
  } catch (...) {  // Interrupted
    task.failure_ = Failure(FailureKind::engine, "the operation was interrupted");
    task.state_.store(CollectiveTask::State::completed);
    end_turn();
    throw;
  }
  task.state_.store(CollectiveTask::State::completed);
  end_turn();
  if (task.failure_) throw *task.failure_;
}

void Progress::enqueue(CollectiveTask& task) {
  {
    const std::lock_guard lock(mutex_);
    group_.check_usable();
    if (is_stopping()) throw destroyed(group_);
    ensure_thread();  // before anything is queued for it, as it may fail
    queue_.push_back({&task, {}});
    count_started(1);
    task.state_.store(CollectiveTask::State::started);
    turn_.fetch_or(queued);
  }
  wake_thread();
}

void Progress::wake_thread() {
  wanted_.store(true);
  changed_.notify_all();
  group_.ring_bell(group_.rank());  // it may be waiting for messages
}

void Progress::refuse(const Refusal& refusal) {
  try {
    const Item item{nullptr, refusal};
    if (!take_turn_or_queue(item)) return;
    const Turn turn{*this};
    // This thread may be waited for in another group by those it would wait for here.
    if (!arrive_refused_at_once(group_, refusal)) leave_to_thread(item);
  } catch (const Failure&) {
    // The group has failed or gone: there is nobody to tell, and the caller raises its own error.
  } catch (const std::exception& cause) {
    group_.record(Failure(FailureKind::engine, std::string("a refused call could not be told of: ") + cause.what() +
                                                   "\nThe group can no longer be used."));
  }
}

void Progress::leave_to_thread(const Item& item) {
  const std::lock_guard lock(mutex_);
  ensure_thread();
  queue_.push_front(item);  // what others have queued meanwhile comes after it
  count_started(1);
  turn_.fetch_or(queued);
  ++untold_refusals_;
}

bool Progress::take_turn() {
  unsigned nothing = 0;
  return turn_.compare_exchange_strong(nothing, busy);
}

bool Progress::take_turn_or_queue(const Item& item) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping()) throw destroyed(group_);
    if (take_turn()) return true;
    ensure_thread();
    queue_.push_back(item);
    count_started(1);
    if (item.task != nullptr)
      item.task->state_.store(CollectiveTask::State::started);
    else
      ++untold_refusals_;
    turn_.fetch_or(queued);
  }
  wake_thread();
  return false;
}

void Progress::end_turn() {
  if (turn_.fetch_and(~busy) == busy) return;
  const std::lock_guard lock(mutex_);  // the thread may be about to wait because of this turn
  wake_thread();
}

void Progress::wait_completed(CollectiveTask& task, double timeout) {
  const auto deadline = deadline_after(timeout);
  struct HeldBehindThread {
    ~HeldBehindThread() { held.store(Held::nothing); }
    std::atomic<Held>& held;
  } const behind{held_behind_thread_};
  if (WaitHooks* hooks = WaitHooksScope::current()) hooks->about_to_block();
  std::unique_lock lock(mutex_);
  while (!task.is_completed()) {
    completed_.wait_until(lock, std::min(deadline, Clock::now() + interrupt_slice));
    if (task.is_completed()) break;
    if (Clock::now() >= deadline) throw wait_timeout();
    lock.unlock();  // the check may need a lock whose owner waits for ours
    if (WaitHooks* hooks = WaitHooksScope::current()) {
      hooks->check_interrupted();
      // Who has a deadline of its own goes on by itself, with another call perhaps.
      behind.held.store(timeout < 0 ? hooks->held() : std::min(hooks->held(), Held::thread));
    }
    lock.lock();
  }
  if (task.failure_) throw *task.failure_;
}

void Progress::drive_in_background() {
  {
    const std::lock_guard lock(mutex_);
    ensure_thread();
  }
  changed_.notify_one();
}

void Progress::ensure_thread() {
  if (thread_.joinable() || is_stopping()) return;
  try {
    thread_ = begin_thread("shim progress", [this] { run(); });
  } catch (const std::exception& failure) {  // the others wait for what it was to carry out
    group_.fail(Failure(FailureKind::engine, failure.what() + std::string(", which started operations need"
                                                                          "\nThe group can no longer be used.")));
  }
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  while (!is_stopping()) {
    if (take_next_turn()) {
      const Item item = take_item();
      lock.unlock();
      carry_out(item);
      count_started(-1);
      lock.lock();
      turn_.fetch_and(~busy);
    } else if (messages_.has_pending()) {
      wanted_.store(false);
      if ((turn_.load() & (busy | queued)) == queued) continue;
      lock.unlock();
      drive_messages();
      lock.lock();
    } else {
      changed_.wait(lock);
    }
  }
}

bool Progress::take_next_turn() { return !queue_.empty() && (turn_.fetch_or(busy) & busy) == 0; }

Progress::Item Progress::take_item() {
  Item item = std::move(queue_.front());
  queue_.pop_front();
  if (queue_.empty()) turn_.fetch_and(~queued);
  return item;
}

void Progress::count_started(int more) {
  started_.fetch_add(more);
  if (!group_.is_part_of_another) started_operations.fetch_add(more);  // which the program has not started
}

void Progress::carry_out(const Item& item) {
  std::optional<Failure> failure;
  try {
    if (item.task == nullptr)
      arrive_refused(group_, item.refusal);
    else
      execute_started(*item.task);
  } catch (const Failure& caught) {
    failure = caught;
  } catch (const std::exception& caught) {
    failure = Failure(FailureKind::engine, caught.what());
  }
  if (item.task != nullptr) return complete(*item.task, std::move(failure));
  const std::lock_guard lock(mutex_);
  --untold_refusals_;
  completed_.notify_all();
}

void Progress::execute_started(CollectiveTask& task) {
  class CallOfTask final : public WaitHooks {
   public:
    CallOfTask(const Progress& progress, const CollectiveTask& task) : progress_(progress), task_(task) {}
    void about_to_block() override {}
    void check_interrupted() override {}
    std::string place() override { return task_.place_; }
    Held held() const override { return progress_.held_behind_thread_.load(); }
    int started_behind() const override { return progress_.started_.load(); }

   private:
    const Progress& progress_;
    const CollectiveTask& task_;
  } hooks(*this, task);
  const WaitHooksScope scope(hooks);
  task.operation_->execute(group_);
}

void Progress::drive_messages() {
  try {
    while (!wanted_.load() && messages_.has_pending()) {
      const std::uint64_t before = messages_.pieces_moved();
      const auto is_ready = [this, before](int rank) {
        // Each piece that moves begins the group's timeout again.
        if (rank == group_.rank())
          return wanted_.load() || !messages_.has_pending() || messages_.pieces_moved() != before;
        messages_.advance();  // see TransferTask::wait
        return !messages_.needs(rank);
      };
      group_.wait_for(group_.rank(), is_ready, [this] { return messages_.describe_pending(); });
    }
  } catch (const Failure& failure) {
    messages_.fail_all(failure);
  } catch (const std::exception& cause) {
    const Failure failure(FailureKind::engine, std::string("messages could not be carried on with: ") + cause.what());
    group_.record(failure);
    messages_.fail_all(failure);
  }
}

void Progress::complete(CollectiveTask& task, std::optional<Failure> failure) {
  {
    const std::lock_guard lock(mutex_);
    task.failure_ = std::move(failure);
    task.state_.store(CollectiveTask::State::completed);
  }
  completed_.notify_all();
  tell_end_listener();
}

void Progress::wait_until_refusals_are_told(std::unique_lock<std::mutex>& lock) {
  const auto until = Clock::now() + last_words;
  while (untold_refusals_ > 0 && group_.is_usable() && !group_.peers().are_all_gone() && Clock::now() < until)
    completed_.wait_for(lock, last_words_slice);
}

void Progress::stop(const std::string& why) {
  {
    std::unique_lock lock(mutex_);
    wait_until_refusals_are_told(lock);
    turn_.fetch_or(stopping);
  }
  wanted_.store(true);
  group_.leave(why);
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  messages_.fail_all(destroyed(group_));
  std::deque<Item> abandoned;
  {
    const std::lock_guard lock(mutex_);  // another thread may be ending an operation of its own
    abandoned.swap(queue_);
  }
  count_started(-static_cast<int>(abandoned.size()));
  for (const Item& item : abandoned)
    if (item.task != nullptr) complete(*item.task, destroyed(group_));
}

}  // namespace shim
