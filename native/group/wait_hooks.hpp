// Who a waiting thread belongs to, and what its wait holds up.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace shim {

class Group;

// What cannot go on before a wait has ended.
enum class Held : std::uint32_t {
  nothing,  // nothing for certain: the wait may be that of a started operation, for which the program need not wait
  thread,   // a thread of the program; another one, or a handler of signals, may still make calls
  program,  // its only thread: this process makes no call before
};

// Of this process, in all its groups: operations that were started and have not ended. They arrive without the program.
// A forked child begins with none.
inline std::atomic<int> started_operations{0};

// What the owner of the waiting thread wants to do around a wait. Set per thread by WaitHooksScope.
class WaitHooks {
 public:
  virtual ~WaitHooks() = default;
  virtual void about_to_block() = 0;     // the wait is going to take long; called any number of times
  virtual void check_interrupted() = 0;  // may throw Interrupted
  // After that was thrown: the wait goes on, as what is waited for has come. It is thrown again by the next check.
  virtual void keep_interrupt() {}
  // Where in the program the call was made that the thread is in: "train.py:12 in step"; empty where nobody knows.
  virtual std::string place() { return {}; }
  virtual Held held() const { return Held::nothing; }
  // How many started operations do not go on before this wait has ended either.
  virtual int started_behind() const { return 0; }
};

// What a wait with these hooks holds up, for all that this process may have started.
inline Held held_by(const WaitHooks& hooks) {
  return started_operations.load() > hooks.started_behind() ? Held::nothing : hooks.held();
}

class WaitHooksScope {
 public:
  explicit WaitHooksScope(WaitHooks& hooks);
  ~WaitHooksScope();
  static WaitHooks* current();

 private:
  WaitHooks* previous_;
};

// For what goes on for long without a wait: now and then, whether the thread is to stop.
class InterruptChecks {
 public:
  explicit InterruptChecks(Group& group) : group_(group) {}
  // Throws Interrupted. Called after each piece of the work.
  void check();

 private:
  static constexpr auto interval = std::chrono::milliseconds(20);

  Group& group_;
  std::chrono::steady_clock::time_point next_{};  // the clock is not asked before there is a second piece
};

}  // namespace shim
