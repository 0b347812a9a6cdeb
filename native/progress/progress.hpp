// The order of a group's operations, and who carries them out.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "collectives/operation.hpp"
#include "group/group.hpp"
#include "messages/point_to_point.hpp"
#include "progress/tasks.hpp"

namespace shim {

// The order of a group's operations, and the thread that carries out the started ones; it begins with the first.
class Progress {
 public:
  explicit Progress(Group& group) : group_(group), messages_(group) { group.set_background_work(&messages_); }
  ~Progress() { stop(); }

  Group& group() { return group_; }
  PointToPoint& messages() { return messages_; }

  // Carries the operation out on this thread, unless something is before it: then it is left alone, and false returned.
  bool run_now(Operation& operation);
  // Those that need the thread throw Failure(engine), and fail the group, where it cannot begin.
  // Carries the operation out on this thread when nothing is before it, otherwise queues it and waits.
  void run_or_enqueue(CollectiveTask& task);
  void enqueue(CollectiveTask& task);
  void wait_completed(CollectiveTask& task, double timeout);
  // Says that this rank's call was wrong, after what is in the queue.
  void refuse(const Refusal& refusal);
  // Has the thread carry on with the messages.
  void drive_in_background();
  // Leaves the group; what has not ended fails. Afterwards no task is touched.
  void stop(const std::string& why = {});

 private:
  struct Turn;
  struct Item {
    CollectiveTask* task;  // null for a refusal
    Refusal refusal;
  };

  // Of turn_.
  static constexpr unsigned busy = 1;      // an operation is being carried out, by whichever thread
  static constexpr unsigned queued = 2;    // the queue is not empty
  static constexpr unsigned stopping = 4;  // no more may begin

  bool take_turn();                                                       // false when anything of turn_ is set
  bool take_turn_or_queue(const Item& item);                              // false when it was queued
  void leave_to_thread(const Item& item);                                 // by who has the turn: first of all
  void wait_until_refusals_are_told(std::unique_lock<std::mutex>& lock);  // for a moment
  void wake_thread();                                                     // there is something for it in the queue
  void end_turn();
  bool is_stopping() const { return (turn_.load() & stopping) != 0; }
  bool take_next_turn();  // for the thread: the queue's first item is to be carried out
  Item take_item();
  void count_started(int more);
  void carry_out(const Item& item);
  void execute_started(CollectiveTask& task);
  void ensure_thread();  // throws Failure(engine), and fails the group, where the system gives none
  void run();
  void drive_messages();
  void complete(CollectiveTask& task, std::optional<Failure> failure);

  Group& group_;
  PointToPoint messages_;
  std::mutex mutex_;
  std::condition_variable changed_;                      // for the thread: something to do
  std::condition_variable completed_;                    // for those who wait: some task was completed
  std::deque<Item> queue_;                               // guarded by mutex_
  int untold_refusals_ = 0;                              // queued or being told; guarded by mutex_
  std::atomic<unsigned> turn_{0};                        // queued and stopping are set and cleared with mutex_ held
  std::atomic<bool> wanted_{false};                      // the thread should come back from the messages
  std::atomic<int> started_{0};                          // in the queue or being carried out by the thread
  std::atomic<Held> held_behind_thread_{Held::nothing};  // by who waits for what the thread carries out
  std::thread thread_;
};

}  // namespace shim
