// Operations that are carried out as soon as they are made, among others that are started, messages and refusals.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

// As the bindings do it.
void sum_now(Rank& me, std::vector<std::int64_t>& data) {
  std::unique_ptr<Operation> operation = summing(me, data);
  if (me.progress().run_now(*operation)) return;
  CollectiveTask(me.progress(), std::move(operation)).wait(-1.0);
}

// Carries the first failure of a thread to the one that joins it.
class Thread {
 public:
  template <class Body>
  explicit Thread(Body body)
      : thread_([this, body] {
          try {
            body();
          } catch (...) {
            failure_ = std::current_exception();
          }
        }) {}
  void join() {
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace

SHIM_TEST(threads_mix_what_is_now_and_what_is_started) {
  constexpr int threads = 3, times = 1000;
  on_ranks(2, [](Rank& me) {
    std::atomic<std::int64_t> total{0};
    std::vector<std::unique_ptr<Thread>> callers;
    for (int thread = 0; thread < threads; ++thread)
      callers.push_back(std::make_unique<Thread>([&me, &total, thread] {
        for (int i = 0; i < times; ++i) {
          std::vector<std::int64_t> data = {1};
          if ((i + thread) % 5 == 0)
            me.start(summing(me, data))->wait(-1.0);
          else
            sum_now(me, data);
          total += data[0];
        }
      }));
    for (const auto& caller : callers) caller->join();
    CHECK_EQUAL(total.load(), std::int64_t{2 * threads * times});
  });
}

SHIM_TEST(messages_and_refusals_between_what_is_now) {
  constexpr int times = 1000;
  on_ranks(2, [](Rank& me) {
    Thread messages([&me] {
      for (std::int64_t i = 0; i < times / 2; ++i) {
        std::vector<std::int64_t> sent(3, i), received(3, -1);
        TransferTask send(me.progress(), view_of(sent), true, 1 - me.rank(), 5);
        TransferTask receive(me.progress(), view_of(received), false, 1 - me.rank(), 5);
        receive.start();
        send.start();
        send.wait(-1.0);
        receive.wait(-1.0);
        CHECK_EQUAL(received[2], i);
      }
    });
    int refused = 0, mismatches = 0;
    for (int i = 0; i < times; ++i) {
      const bool is_refused = i % 17 == 3;
      refused += is_refused ? 1 : 0;
      if (is_refused && me.rank() == 0) {
        me.progress().refuse({"wrong", ""});
        continue;
      }
      std::vector<std::int64_t> data = {1};
      try {
        sum_now(me, data);
        CHECK_EQUAL(data[0], std::int64_t{2});
      } catch (const Failure& failure) {
        CHECK(failure.kind == FailureKind::mismatch);
        ++mismatches;
      }
    }
    messages.join();
    CHECK_EQUAL(mismatches, me.rank() == 0 ? 0 : refused);
  });
}

SHIM_TEST(stopping_while_a_thread_goes_on_with_what_is_now) {
  for (int round = 0; round < 60; ++round)
    on_ranks(2, [round](Rank& me) {
      Thread caller([&me, round] {
        try {
          for (;;) {
            std::vector<std::int64_t> data(round % 3 == 0 ? 50'000 : 1, 1);
            sum_now(me, data);
          }
        } catch (const Failure& failure) {
          CHECK(failure.kind == FailureKind::state || failure.kind == FailureKind::peer_lost);
        }
      });
      std::this_thread::sleep_for(std::chrono::microseconds(137 * (round % 20)));
      me.progress().stop();
      caller.join();
    });
}
