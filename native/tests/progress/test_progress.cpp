// Operations in the background, and what happens when ranks are late, leave or die.
#include <atomic>
#include <chrono>

#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

}  // namespace

SHIM_TEST(started_operations_run_in_order) {
  for (const int size : {1, 2, 3})
    on_ranks(size, [&](Rank& me) {
      std::vector<std::int64_t> data(1000, 1);
      std::vector<std::unique_ptr<CollectiveTask>> tasks;
      for (int i = 0; i < 20; ++i) tasks.push_back(me.start(summing(me, data)));
      me.run(summing(me, data));  // waits its turn behind them
      std::int64_t expected = 1;
      for (int i = 0; i < 21; ++i) expected *= me.size();
      for (const std::int64_t x : data) CHECK_EQUAL(x, expected);
      for (auto& task : tasks) CHECK(task->is_completed());
    });
}

SHIM_TEST(some_ranks_start_and_others_wait) {
  on_ranks(3, [](Rank& me) {
    for (int step = 0; step < 500; ++step) {
      std::vector<std::int64_t> data(step % 50 == 0 ? 40'000 : 3, me.rank());
      if ((step + me.rank()) % 3 == 0) {
        const auto task = me.start(summing(me, data));
        task->wait(-1);
      } else {
        me.run(summing(me, data));
      }
      CHECK_EQUAL(data.back(), 3);
    }
  });
}

SHIM_TEST(two_threads_of_a_rank_take_turns) {
  on_ranks(2, [](Rank& me) {
    std::vector<std::int64_t> totals(2, 0);
    std::vector<std::thread> threads;
    std::exception_ptr error;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        try {
          for (int i = 0; i < 300; ++i) {
            std::vector<std::int64_t> data = {1};  // the same on both threads, whose order is not determined
            me.run(summing(me, data));
            totals[static_cast<std::size_t>(t)] += data[0];
          }
        } catch (...) {
          error = std::current_exception();
        }
      });
    for (std::thread& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
    CHECK_EQUAL(totals[0] + totals[1], 1200);
  });
}

SHIM_TEST(a_wait_with_its_own_timeout_lets_the_operation_go_on) {
  on_ranks(2, [](Rank& me) {
    std::vector<std::int64_t> data = {me.rank() + 1};
    if (me.rank() == 1) pause_ms(200);
    CollectiveTask task(me.progress(), summing(me, data));
    if (me.rank() == 0) {
      try {
        task.wait(0.03);
        throw std::runtime_error("no timeout");
      } catch (const Failure& failure) {
        CHECK(failure.kind == FailureKind::timeout);
      }
    }
    task.wait(-1);
    CHECK_EQUAL(data[0], 3);
  });
}

SHIM_TEST(an_absent_rank_is_named) {
  on_ranks(
      3,
      [](Rank& me) {
        std::vector<std::int64_t> data = {1};
        if (me.rank() == 1) return pause_ms(600);
        try {
          me.run(summing(me, data));
          throw std::runtime_error("no timeout");
        } catch (const Failure& failure) {
          CHECK(failure.kind == FailureKind::timeout);
          CHECK_EQUAL(failure.ranks.size(), std::size_t{1});
          CHECK_EQUAL(failure.ranks[0], 1);
        }
        CHECK(me.failure_of(summing(me, data)) == FailureKind::timeout);
      },
      0.2);
}

SHIM_TEST(a_rank_that_leaves_is_named) {
  for (const bool in_background : {false, true})
    on_ranks(3, [&](Rank& me) {
      std::vector<std::int64_t> data(50'000, 1);
      for (int i = 0; i < 3; ++i) me.run(summing(me, data));
      if (me.rank() == 2) return me.progress().stop();
      try {
        if (in_background)
          me.start(summing(me, data))->wait(-1);
        else
          me.run(summing(me, data));
        throw std::runtime_error("nobody noticed");
      } catch (const Failure& failure) {
        CHECK(failure.kind == FailureKind::peer_lost);
        CHECK_EQUAL(failure.ranks.at(0), 2);
      }
    });
}

SHIM_TEST(a_dead_rank_is_noticed_at_once) {
  on_ranks(3, [](Rank& me) {
    std::vector<std::int64_t> data = {1};
    me.run(summing(me, data));
    if (me.rank() == 2) return pause_ms(100);
    std::thread watcher([&] {
      pause_ms(20);
      me.group().mark_lost(2);
    });
    const auto start = std::chrono::steady_clock::now();
    CHECK(me.failure_of(summing(me, data)) == FailureKind::peer_lost);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(1));
    CHECK(me.failure_of(summing(me, data)) == FailureKind::peer_lost);
    watcher.join();
  });
}

SHIM_TEST(a_rank_that_finished_before_it_died_is_not_missed) {
  std::atomic<bool> finished{false};
  on_ranks(2, [&](Rank& me) {
    std::vector<std::int64_t> data(100'000, 1);
    if (me.rank() == 1) {
      me.run(summing(me, data));
      finished = true;
      return me.progress().stop();
    }
    const auto task = me.start(summing(me, data));
    while (!finished) pause_ms(1);
    me.group().mark_lost(1);
    task->wait(-1);
    CHECK_EQUAL(data.back(), 2);
  });
}

SHIM_TEST(stopping_ends_what_is_pending) {
  on_ranks(2, [](Rank& me) {
    std::vector<std::int64_t> data = {1};
    if (me.rank() == 1) return pause_ms(100);
    const auto first = me.start(summing(me, data));
    const auto second = me.start(summing(me, data));
    TransferTask waiting(me.progress(), view_of(data), false, 1, 0);
    waiting.start();
    pause_ms(20);
    me.progress().stop();
    CHECK(first->is_completed() && second->is_completed() && waiting.is_completed());
    CHECK(second->failure().has_value());
    CHECK(second->failure()->kind == FailureKind::state);
    CHECK(me.failure_of(summing(me, data)) == FailureKind::state);
  });
}

SHIM_TEST(destroying_the_group_ends_another_threads_wait) {
  on_ranks(2, [](Rank& me) {
    std::vector<std::int64_t> data = {1};
    if (me.rank() == 1) return pause_ms(150);
    FailureKind kind = FailureKind::argument;
    std::thread waiting([&] { kind = me.failure_of(summing(me, data)); });
    pause_ms(30);
    me.progress().stop();
    waiting.join();
    CHECK(kind == FailureKind::state);
  });
}

SHIM_TEST(a_pending_receive_does_not_hold_up_what_two_threads_queue) {
  on_ranks(
      2,
      [](Rank& me) {
        std::vector<std::int64_t> message = {me.rank()};
        const int other = 1 - me.rank();
        TransferTask receiving(me.progress(), view_of(message), false, other, 5);
        receiving.start();
        std::vector<std::thread> threads;
        std::exception_ptr error;
        for (int t = 0; t < 2; ++t)
          threads.emplace_back([&] {
            try {
              for (int i = 0; i < 200; ++i) {
                std::vector<std::int64_t> data = {1};
                me.run(summing(me, data));
              }
            } catch (...) {
              error = std::current_exception();
            }
          });
        for (std::thread& thread : threads) thread.join();
        if (error) std::rethrow_exception(error);
        std::vector<std::int64_t> mine = {10 + me.rank()};
        TransferTask(me.progress(), view_of(mine), true, other, 5).wait(-1);
        receiving.wait(-1);
        CHECK_EQUAL(message[0], 10 + other);
      },
      5);
}

SHIM_TEST(a_stream_of_messages_may_last_longer_than_the_timeout) {
  on_ranks(
      2,
      [](Rank& me) {
        constexpr int messages = 10;
        std::vector<std::vector<std::int64_t>> data(messages, {me.rank()});
        if (me.rank() == 0) {
          for (auto& message : data) {
            pause_ms(250);  // far from the timeout, which a machine under load must not make of it
            TransferTask(me.progress(), view_of(message), true, 1, 0).wait(-1);
          }
          return;
        }
        std::vector<std::unique_ptr<TransferTask>> receives;
        for (auto& message : data) {
          receives.push_back(std::make_unique<TransferTask>(me.progress(), view_of(message), false, 0, 0));
          receives.back()->start();
        }
        while (!receives.back()->is_completed()) pause_ms(5);
        for (auto& receive : receives) receive->wait(-1);
        for (const auto& message : data) CHECK_EQUAL(message[0], 0);
      },
      2);
}

SHIM_TEST(a_message_that_never_comes_is_named) {
  on_ranks(
      2,
      [](Rank& me) {
        if (me.rank() == 1) return pause_ms(600);
        std::vector<std::int64_t> data = {1, 2};
        TransferTask receiving(me.progress(), view_of(data), false, 1, 7);
        try {
          receiving.wait(-1);
          throw std::runtime_error("no timeout");
        } catch (const Failure& failure) {
          CHECK(failure.kind == FailureKind::timeout);
          CHECK(std::string(failure.what()).find("receiving 2 elements of int64 from rank 1 with tag 7") == 0);
        }
      },
      0.2);
}

SHIM_TEST(a_rank_may_leave_as_soon_as_it_has_what_it_needs) {
  // What fits into an arrival line is put into a ring after the arrival, when another rank's part does not fit, and
  // that part before it.
  const std::vector<std::uint64_t> counts = {1, 40, 2, 100};
  for (int round = 0; round < 400; ++round)
    on_ranks(4, [&](Rank& me) {
      const auto mine_at = static_cast<std::size_t>(me.rank());
      std::vector<std::int64_t> mine(counts[mine_at], me.rank());
      std::vector<std::vector<std::int64_t>> all;
      for (const std::uint64_t count : counts) all.emplace_back(count, -1);
      me.run(make_all_gather(me.seat(), list("output", all), one("input", mine), no_splits("output_splits")));
      me.progress().stop();
      for (std::size_t rank = 0; rank < all.size(); ++rank)
        CHECK_EQUAL(all[rank].back(), static_cast<std::int64_t>(rank));
    });
}
