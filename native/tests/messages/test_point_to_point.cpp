// Messages between two ranks: order, tags, any source, long ones both ways, and what does not fit.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

std::unique_ptr<TransferTask> send(Rank& me, std::vector<std::int64_t>& data, int peer, int tag = 0) {
  return std::make_unique<TransferTask>(me.progress(), view_of(data), true, peer, tag);
}

std::unique_ptr<TransferTask> receive(Rank& me, std::vector<std::int64_t>& data, int peer, int tag = 0) {
  return std::make_unique<TransferTask>(me.progress(), view_of(data), false, peer, tag);
}

std::vector<std::int64_t> message(int sender, int tag, std::size_t count) {
  std::vector<std::int64_t> data(count);
  for (std::size_t i = 0; i < count; ++i)
    data[i] = sender * 1'000'000'000LL + tag * 10'000'000LL + static_cast<std::int64_t>(i);
  return data;
}

}  // namespace

SHIM_TEST(messages_of_all_sizes_go_around_a_ring) {
  for (const int size : {2, 3, 4, 7})
    on_ranks(size, [](Rank& me) {
      const int next = (me.rank() + 1) % me.size();
      const int before = (me.rank() + me.size() - 1) % me.size();
      for (const std::size_t count : {0, 1, 3, 4, 8192, 8193, 100'000}) {
        auto mine = message(me.rank(), 0, count);
        std::vector<std::int64_t> got(count, -1);
        const auto sent = send(me, mine, next);
        sent->start();  // all send first: long messages go on while the receives below are waited for
        receive(me, got, before)->wait(-1);
        sent->wait(-1);
        CHECK(got == message(before, 0, count));
      }
    });
}

SHIM_TEST(messages_whose_slots_are_streamed_arrive) {
  on_ranks(3, [](Rank& me) {
    const int next = (me.rank() + 1) % me.size();
    const int before = (me.rank() + me.size() - 1) % me.size();
    for (const std::size_t count : {2047, 2048, 8191, 8193, 100'003}) {
      auto mine = message(me.rank(), 0, count);
      std::vector<std::int64_t> got(count, -1);
      find_slow(me.progress().messages().slot_times(next));
      const auto sent = send(me, mine, next);
      sent->start();
      receive(me, got, before)->wait(-1);
      sent->wait(-1);
      CHECK(got == message(before, 0, count));
    }
  });
}

SHIM_TEST(receives_choose_by_tag_whatever_the_order) {
  on_ranks(2, [](Rank& me) {
    for (const std::size_t count : {3, 50'000}) {
      if (me.rank() == 0) {
        std::vector<std::unique_ptr<TransferTask>> sent;
        std::vector<std::vector<std::int64_t>> data;
        for (int tag = 0; tag < 4; ++tag) data.push_back(message(0, tag, count));
        for (int tag = 0; tag < 4; ++tag) {
          sent.push_back(send(me, data[static_cast<std::size_t>(tag)], 1, tag));
          sent.back()->start();
        }
        for (auto& task : sent) task->wait(-1);
      } else {
        for (const int tag : {2, 0, 3, 1}) {
          std::vector<std::int64_t> got(count);
          receive(me, got, 0, tag)->wait(-1);
          CHECK(got == message(0, tag, count));
        }
      }
      me.run(make_barrier(me.seat()));
    }
  });
}

SHIM_TEST(messages_of_one_tag_keep_their_order) {
  on_ranks(2, [](Rank& me) {
    for (std::int64_t i = 0; i < 2000; ++i) {
      std::vector<std::int64_t> data = {i};
      if (me.rank() == 0)
        send(me, data, 1)->wait(-1);
      else {
        data[0] = -1;
        receive(me, data, 0)->wait(-1);
        CHECK_EQUAL(data[0], i);
      }
    }
  });
}

SHIM_TEST(a_receive_from_any_rank_says_from_which) {
  on_ranks(4, [](Rank& me) {
    if (me.rank() > 0) {
      auto mine = message(me.rank(), 9, 100);
      send(me, mine, 0, 9)->wait(-1);
      return;
    }
    std::vector<bool> seen(4);
    for (int i = 0; i < 3; ++i) {
      std::vector<std::int64_t> got(100);
      const auto task = receive(me, got, Transfer::any_rank, 9);
      task->wait(-1);
      CHECK(got == message(task->source_rank(), 9, 100));
      seen[static_cast<std::size_t>(task->source_rank())] = true;
    }
    CHECK(seen[1] && seen[2] && seen[3]);
  });
}

SHIM_TEST(a_message_that_does_not_fit_is_refused_and_the_next_one_arrives) {
  on_ranks(2, [](Rank& me) {
    for (const std::size_t count : {4, 100'000}) {  // the sender of a long one learns of it too
      auto wrong = message(0, 0, count);
      auto right = message(0, 1, count);
      std::vector<std::int64_t> got(count + (me.rank() == 1 ? 1 : 0), -1);
      if (me.rank() == 0) {
        bool told = false;
        try {
          send(me, wrong, 1)->wait(-1);
        } catch (const Failure& failure) {
          told = failure.kind == FailureKind::mismatch;
        }
        CHECK_EQUAL(told, count > 1000);
        send(me, right, 1)->wait(-1);
      } else {
        try {
          receive(me, got, 0)->wait(-1);
          throw std::runtime_error("no mismatch");
        } catch (const Failure& failure) {
          CHECK(failure.kind == FailureKind::mismatch);
        }
        CHECK(std::all_of(got.begin(), got.end(), [](std::int64_t x) { return x == -1; }));
        got.resize(count);
        receive(me, got, 0)->wait(-1);
        CHECK(got == right);
      }
    }
  });
}

SHIM_TEST(the_sender_of_what_does_not_fit_learns_of_it_though_nothing_else_is_received) {
  on_ranks(2, [](Rank& me) {
    auto wrong = message(0, 0, 200'000);
    std::vector<std::int64_t> got(2, -1);
    bool told = false;
    try {
      if (me.rank() == 0)
        send(me, wrong, 1)->wait(5);
      else
        receive(me, got, 0)->wait(5);
    } catch (const Failure& failure) {
      told = failure.kind == FailureKind::mismatch;
    }
    CHECK(told);
    std::this_thread::sleep_for(std::chrono::milliseconds(me.rank() == 1 ? 500 : 0));
  });
}

SHIM_TEST(a_rank_may_send_to_itself) {
  on_ranks(1, [](Rank& me) {
    auto mine = message(0, 0, 50'000);
    std::vector<std::int64_t> got(50'000);
    const auto sent = send(me, mine, 0);
    sent->start();
    receive(me, got, 0)->wait(-1);
    sent->wait(-1);
    CHECK(got == mine);
  });
}

SHIM_TEST(a_message_outlives_its_sender) {
  on_ranks(2, [](Rank& me) {
    std::vector<std::int64_t> data = {42};
    if (me.rank() == 0) {
      send(me, data, 1)->wait(-1);
      me.progress().stop();
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    data[0] = 0;
    receive(me, data, 0)->wait(-1);
    CHECK_EQUAL(data[0], 42);
  });
}

SHIM_TEST(a_withdrawn_receive_loses_nothing_that_follows) {
  on_ranks(2, [](Rank& me) {
    std::vector<std::int64_t> data = {7};
    if (me.rank() == 1) {
      {
        std::vector<std::int64_t> never = {0};
        const auto task = receive(me, never, 0, 5);
        try {
          task->wait(0.05);
          throw std::runtime_error("no timeout");
        } catch (const Failure& failure) {
          CHECK(failure.kind == FailureKind::timeout);
        }
      }
      me.run(make_barrier(me.seat()));
      data[0] = 0;
      receive(me, data, 0, 5)->wait(-1);
      CHECK_EQUAL(data[0], 7);
    } else {
      me.run(make_barrier(me.seat()));
      send(me, data, 1, 5)->wait(-1);
    }
  });
}

SHIM_TEST(messages_move_while_a_collective_waits) {
  on_ranks(2, [](Rank& me) {
    auto mine = message(0, 0, 200'000);
    std::vector<std::int64_t> got(200'000);
    if (me.rank() == 0) {
      const auto sent = send(me, mine, 1);
      sent->start();
      me.run(make_barrier(me.seat()));
      sent->wait(-1);
    } else {
      receive(me, got, 0)->wait(-1);
      me.run(make_barrier(me.seat()));
      CHECK(got == mine);
    }
  });
}
