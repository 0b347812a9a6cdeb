// Long messages of shared tensors, which both ranks copy from tensor to tensor: all sizes, what is declined, and ends
// in the middle.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/cross_memory.hpp"

using namespace shim;
using namespace shim::tests;

SHIM_TEST(offered_messages_of_all_sizes_go_around_a_ring) {
  for (const int size : {2, 3, 4, 7})
    on_ranks(size, [](Rank& me) {
      const int next = (me.rank() + 1) % me.size();
      const int before = (me.rank() + me.size() - 1) % me.size();
      for (const std::size_t bytes :
           {std::size_t{0}, std::size_t{1}, std::size_t{1000}, chunk - 1, chunk, chunk + 1, 40 * chunk + 77}) {
        Tensor mine(message(bytes, static_cast<unsigned>(me.rank())), true);
        Tensor got(Bytes(bytes, 1), true);
        const auto sent = send(me, mine.view(), next);
        sent->start();
        receive(me, got.view(), before)->wait(-1);
        sent->wait(-1);
        CHECK(got.has(message(bytes, static_cast<unsigned>(before))));
        CHECK(bytes <= chunk || me.group().channel(before, me.rank()).answer == OfferAnswer::accepted);
      }
    });
}

SHIM_TEST(what_nobody_waits_for_and_what_has_gaps_is_declined) {
  on_ranks(2, [](Rank& me) {
    for (const std::size_t bytes : {std::size_t{12}, 3 * chunk}) {
      if (me.rank() == 0) {
        std::vector<std::unique_ptr<Tensor>> data;
        std::vector<std::unique_ptr<TransferTask>> sent;
        for (int tag = 0; tag < 3; ++tag)
          data.push_back(std::make_unique<Tensor>(message(bytes, static_cast<unsigned>(tag)), true));
        for (int tag = 0; tag < 3; ++tag) {
          sent.push_back(send(me, data[static_cast<std::size_t>(tag)]->view(), 1, tag));
          sent.back()->start();
        }
        for (const auto& task : sent) task->wait(-1);
      } else {
        for (const int tag : {2, 0}) {
          Bytes got(bytes);
          receive(me, got, 0, tag)->wait(-1);
          CHECK(got == message(bytes, static_cast<unsigned>(tag)));
        }
        Bytes wide(2 * bytes);
        TensorView view = view_of(wide, {static_cast<std::int64_t>(bytes)});
        view.strides[0] = 2;
        TransferTask(me.progress(), view, false, 0, 1).wait(-1);
        const Bytes whole = message(bytes, 1);
        for (std::size_t i = 0; i < bytes; ++i) CHECK(wide[2 * i] == whole[i] && wide[2 * i + 1] == 0);
      }
      me.run(make_barrier(me.seat()));
    }
  });
}

SHIM_TEST(an_offer_that_does_not_fit_is_refused_and_the_next_one_arrives) {
  on_ranks(2, [](Rank& me) {
    Tensor wrong(message(3 * chunk, 0), true);
    Tensor right(message(2 * chunk, 1), true);
    if (me.rank() == 0) {
      CHECK(failure_of(*send(me, wrong.view(), 1)) == FailureKind::mismatch);
      send(me, right.view(), 1)->wait(-1);
    } else {
      Bytes got(2 * chunk, 9);
      CHECK(failure_of(*receive(me, got, 0)) == FailureKind::mismatch);
      CHECK(std::all_of(got.begin(), got.end(), [](std::uint8_t x) { return x == 9; }));
      receive(me, got, 0)->wait(-1);
      CHECK(got == message(2 * chunk, 1));
    }
  });
}

SHIM_TEST(nothing_is_written_after_a_receive_was_withdrawn) {
  on_ranks(2, [](Rank& me) {
    constexpr std::size_t bytes = 16 * chunk;
    Tensor tensor(message(bytes, 5), true);
    PointToPoint& messages = me.progress().messages();
    for (int time = 0; time < 200; ++time) {
      if (me.rank() == 0) {
        send(me, tensor.view(), 1)->wait(-1);
      } else {
        Transfer transfer(tensor.view(), false, 0, 0);
        transfer.prepare();
        const std::uint64_t before = messages.pieces_moved();
        messages.post(transfer);
        while (messages.pieces_moved() == before) messages.advance();
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(time * 2);
        while (std::chrono::steady_clock::now() < until) messages.advance();
        messages.withdraw(transfer);
        // The last byte of a chunk is what a writer of it comes to last.
        for (std::size_t end = chunk; end <= bytes; end += chunk) tensor.data()[end - 1] = 99;
        std::this_thread::sleep_for(std::chrono::microseconds(300));
        for (std::size_t end = chunk; end <= bytes; end += chunk)
          CHECK(tensor.is_given_up() || tensor.data()[end - 1] == 99);
      }
      me.run(make_barrier(me.seat()));
    }
  });
}

SHIM_TEST(a_send_that_is_withdrawn_says_so_and_nothing_is_sent_after_it) {
  on_ranks(2, [](Rank& me) {
    Tensor data(message(4 * chunk, 5), true);
    PointToPoint& messages = me.progress().messages();
    if (me.rank() == 0) {
      Transfer first(data.view(), true, 1, 0);
      Transfer second(data.view(), true, 1, 0);
      for (Transfer* transfer : {&first, &second}) {
        transfer->prepare();
        messages.post(*transfer);
      }
      me.run(make_barrier(me.seat()));
      messages.withdraw(first);
      CHECK_EQUAL(me.group().channel(0, 1).copy.given_up.load(), first.number);
      CHECK(!me.group().is_usable());
      CHECK(!messages.advance());
      messages.withdraw(second);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // its tensor is being read
    } else {
      me.run(make_barrier(me.seat()));
      while (!me.group().is_gone(0)) std::this_thread::yield();
      Bytes got(4 * chunk);
      CHECK(failure_of(*receive(me, got, 0)) == FailureKind::peer_lost);
    }
  });
}

SHIM_TEST(a_receive_raises_when_its_sender_gives_up_in_the_middle) {
  std::atomic<int> given_up{0};
  for (int time = 0; time < 10 || (given_up == 0 && time < 200); ++time)  // it may be too late, where others run
    on_ranks(2, [&given_up](Rank& me) {
      const Bytes right = message(64 * chunk, 5);
      if (me.rank() == 0) {
        auto tensor = std::make_unique<Tensor>(right, true);
        Transfer transfer(tensor->view(), true, 1, 0);
        transfer.prepare();
        PointToPoint& messages = me.progress().messages();
        messages.post(transfer);
        const LentCopyState& copy = me.group().channel(0, 1).copy;
        // Until rank 1 has taken some chunks.
        while (static_cast<std::uint32_t>(copy.untaken.load()) < 4) std::this_thread::yield();
        messages.withdraw(transfer);
        std::fill_n(tensor->data(), right.size(), std::uint8_t{0});
        tensor.reset();
      } else {
        Tensor got(Bytes(right.size()), true);
        try {
          receive(me, got.view(), 0)->wait(-1);
          CHECK(got.has(right));  // it was over before
        } catch (const Failure& failure) {
          CHECK(failure.kind == FailureKind::peer_lost);
          ++given_up;
        }
      }
    });
  CHECK(given_up > 0);
}

SHIM_TEST(memory_that_a_sender_that_left_may_write_to_is_given_up) {
  std::atomic<bool> is_taken{false};
  on_ranks(2, [&is_taken](Rank& me) {
    Tensor data(message(4 * chunk, 5), true);
    PointToPoint& messages = me.progress().messages();
    Transfer transfer(data.view(), me.rank() == 0, 1 - me.rank(), 0);
    transfer.prepare();
    if (me.rank() == 1) {
      me.run(make_barrier(me.seat()));  // the message is there
      messages.post(transfer);
      LentCopyState& copy = me.group().channel(0, 1).copy;
      CHECK(copy.untaken.load() != 0);
      copy.untaken.fetch_sub(std::uint64_t{1} << 32);  // as if the sender had taken a chunk
      is_taken = true;
      while (!me.group().is_gone(0)) std::this_thread::yield();
      messages.fail_all(Failure(FailureKind::peer_lost, "rank 0 left"));
      CHECK(data.is_given_up());
      copy.written.fetch_add(1);
      return;
    }
    messages.post(transfer);
    me.run(make_barrier(me.seat()));
    while (!is_taken && !me.group().is_gone(1)) std::this_thread::yield();  // takes no chunk, as a wait would
    messages.withdraw(transfer);
    me.group().leave();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // its tensor may be read
  });
}
