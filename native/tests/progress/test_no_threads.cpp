// Where the system gives no thread, what needs one is told so at once, on every rank.
#include <atomic>
#include <barrier>
#include <string>
#include <thread>

#include "tests/no_threads.hpp"
#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

// Runs both ranks; rank 0 does `act`, for which it has no thread, and rank 1 hears of it.
void without_threads(const std::function<void(Rank&)>& act) {
  std::barrier<> all(2);
  on_ranks(2, [&](Rank& me) {
    all.arrive_and_wait();
    std::string text;
    try {
      if (me.rank() == 0) {
        const NoThreads none;
        act(me);
      } else {
        std::vector<std::int64_t> data = {1};
        me.run(summing(me, data));
      }
    } catch (const Failure& failure) {
      text = failure.what();
      CHECK(failure.kind == (me.rank() == 0 ? FailureKind::engine : FailureKind::peer_lost));
    }
    CHECK(text.find("cannot begin a thread") != std::string::npos);
    me.progress().stop();  // nothing is left in the queue for which it would wait
  });
}

}  // namespace

SHIM_TEST(a_started_operation_without_a_thread_fails) {
  without_threads([](Rank& me) {
    std::vector<std::int64_t> data = {1};
    CollectiveTask task(me.progress(), summing(me, data));
    try {
      task.start();
    } catch (const Failure&) {
      CHECK(!task.is_started());
      throw;
    }
  });
}

SHIM_TEST(a_started_receive_without_a_thread_fails) {
  without_threads([](Rank& me) {
    std::vector<std::int64_t> data = {1};
    TransferTask task(me.progress(), view_of(data), false, 1, 0);
    try {
      task.start();
    } catch (const Failure&) {
      CHECK(task.is_completed() && task.failure().has_value());
      CHECK(!me.progress().messages().has_pending());
      throw;
    }
  });
}

SHIM_TEST(a_wait_behind_another_thread_without_a_thread_fails) {
  struct Blocking final : WaitHooks {
    void about_to_block() override { has_begun = true; }
    void check_interrupted() override {}
    std::atomic<bool> has_begun{false};
  };
  std::atomic<bool> has_failed{false};
  on_ranks(2, [&](Rank& me) {
    std::vector<std::int64_t> data = {1};
    if (me.rank() == 1) {
      while (!has_failed) std::this_thread::yield();
      return;
    }
    Blocking hooks;
    std::thread first([&] {
      const WaitHooksScope scope(hooks);
      std::vector<std::int64_t> mine = {1};
      CHECK(me.failure_of(summing(me, mine)) == FailureKind::peer_lost);
    });
    while (!hooks.has_begun) std::this_thread::yield();
    FailureKind kind = FailureKind::argument;
    {
      const NoThreads none;
      kind = me.failure_of(summing(me, data));
    }
    has_failed = true;  // and rank 1 leaves
    me.group().mark_lost(1);
    first.join();
    CHECK(kind == FailureKind::engine);
  });
}
