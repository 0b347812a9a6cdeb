// Long messages of tensors in shared memory, copied from the one to the other: which ends lie there, what is freed, and
// ends in the middle.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "../loans.hpp"
#include "../shared_allocation.hpp"
#include "cross_memory.hpp"
#include "floats.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

constexpr std::size_t some = 3 * chunk + 77;  // more than fits the channel of so few ranks

// Bytes in shared memory, or in the process's own.
class Tensor {
 public:
  Tensor(const Bytes& values, bool is_shared) : private_(values) {
    if (!is_shared) return;
    shared_ = std::make_unique<SharedAllocation>(std::max<std::size_t>(values.size(), 1));
    std::copy(values.begin(), values.end(), data());
  }
  std::uint8_t* data() { return shared_ ? reinterpret_cast<std::uint8_t*>(shared_->data()) : private_.data(); }
  TensorView view() {
    TensorView view = view_of(private_);
    view.data = reinterpret_cast<std::byte*>(data());
    return view;
  }
  bool has(const Bytes& values) { return std::equal(values.begin(), values.end(), data(), data() + private_.size()); }

 private:
  Bytes private_;
  std::unique_ptr<SharedAllocation> shared_;
};

std::unique_ptr<TransferTask> send(Rank& me, Tensor& tensor, int peer) {
  return std::make_unique<TransferTask>(me.progress(), tensor.view(), true, peer, 0);
}

std::unique_ptr<TransferTask> receive(Rank& me, Tensor& tensor, int peer) {
  return std::make_unique<TransferTask>(me.progress(), tensor.view(), false, peer, 0);
}

// No tensor is long enough for the kernel to copy it.
Thresholds lending_only() { return crossing_from(1ull << 40); }

// From rank 0 to rank 1, which waits for it and checks it.
void pass_on(Rank& me, Tensor& tensor, const Bytes& right) {
  const auto task = me.rank() == 0 ? send(me, tensor, 1) : receive(me, tensor, 0);
  if (me.rank() == 1) task->start();
  me.run(make_barrier(me.seat()));
  task->wait(-1);
  CHECK(me.rank() == 0 || tensor.has(right));
}

// Of the messages from rank 0 to rank 1, of which the first has the number 1.
OfferAnswer answer(Rank& me) { return me.group().channel(0, 1).answer; }
std::uint64_t last_offered(Rank& me) { return me.group().channel(0, 1).answered.load() - first_number(); }

}  // namespace

SHIM_TEST(lent_messages_of_all_sizes_go_around_a_ring) {
  for (const int size : {2, 3, 4, 7})
    on_ranks(
        size,
        [](Rank& me) {
          const int next = (me.rank() + 1) % me.size();
          const int before = (me.rank() + me.size() - 1) % me.size();
          for (const std::size_t bytes :
               {std::size_t{0}, std::size_t{1}, 2 * chunk - 1, 2 * chunk + 1, some, 40 * chunk}) {
            Tensor mine(message(bytes, static_cast<unsigned>(me.rank())), true);
            Tensor got(Bytes(bytes, 1), true);
            const auto sent = send(me, mine, next);
            sent->start();
            receive(me, got, before)->wait(-1);
            sent->wait(-1);
            CHECK(got.has(message(bytes, static_cast<unsigned>(before))));
          }
        },
        60, lending_only());
}

SHIM_TEST(a_send_that_fits_the_channel_ends_at_once) {
  on_ranks(
      2,
      [](Rank& me) {
        Tensor tensor(message(channel_slots * me.group().layout().channel_payload_bytes(), 3), true);
        if (me.rank() == 0) send(me, tensor, 1)->wait(-1);
        me.run(make_barrier(me.seat()));
        if (me.rank() == 1) receive(me, tensor, 0)->wait(-1);
        CHECK_EQUAL(me.group().channel(0, 1).answered.load(), std::uint64_t{0});
      },
      60, lending_only());
}

// Both tensors, one of them, or none in shared memory, where the kernel copies between the ranks and where it does not.
SHIM_TEST(either_end_may_be_private) {
  for (const bool is_readable : {true, false})
    on_ranks(
        2,
        [is_readable](Rank& me) {
          if (!is_readable) ++me.group().note(me.rank()).identity;
          me.run(make_barrier(me.seat()));
          for (unsigned time = 0; time < 8; ++time) {
            const bool is_source_shared = time % 2 == 0;
            const Bytes right = message(some, time);
            Tensor tensor(me.rank() == 0 ? right : Bytes(some), me.rank() == 0 ? is_source_shared : time % 4 < 2);
            pass_on(me, tensor, right);
            const bool is_copied = is_readable || is_source_shared;
            if (is_copied) CHECK(answer(me) == OfferAnswer::accepted);
            if (!is_readable && time == 1) CHECK(answer(me) == OfferAnswer::never);
            CHECK((last_offered(me) == time + 1) == (is_copied || time == 1));
          }
        },
        60, crossing_from(1));
}

SHIM_TEST(what_cannot_be_mapped_is_read_by_the_kernel_or_goes_through_the_channel) {
  for (const bool is_readable : {true, false})
    on_ranks(
        2,
        [is_readable](Rank& me) {
          if (!is_readable && me.rank() == 0) ++me.group().note(0).identity;
          me.run(make_barrier(me.seat()));
          for (unsigned time = 0; time < 3; ++time) {
            const Bytes right = message(some, time);
            Tensor tensor(me.rank() == 0 ? right : Bytes(some), true);
            if (me.rank() == 0) {  // lends it, and then says of another file that it is this one
              Place place{};
              me.group().message_loans().lend(tensor.view().data, some, place);
              ++me.group().lent_by(0, LentFor::messages)[place.slot].inode;
            }
            pass_on(me, tensor, right);
            CHECK(answer(me) == (is_readable ? OfferAnswer::accepted : OfferAnswer::never));
          }
          CHECK_EQUAL(last_offered(me), std::uint64_t{is_readable ? 3u : 1u});
        },
        60, crossing_from(1));
}

// Which the next message sees to, and the next operation.
SHIM_TEST(what_was_sent_and_freed_is_mapped_by_nobody) {
  const std::size_t before = mapped_files();
  for (const bool is_message : {true, false}) {
    std::atomic<int> arrived{0};
    const auto all_there = [&arrived](int times) {
      for (arrived.fetch_add(1); arrived.load() < 2 * times;) std::this_thread::yield();
    };
    on_ranks(
        2,
        [&](Rank& me) {
          for (unsigned cycle = 0; cycle < lent_allocations + 40; ++cycle) {
            const Bytes right = message(2 * chunk + 1, cycle);
            Tensor tensor(me.rank() == 0 ? right : Bytes(right.size()), true);
            pass_on(me, tensor, right);
            CHECK(last_offered(me) == cycle + 1 && answer(me) == OfferAnswer::accepted);
          }
          all_there(1);
          Tensor nothing({}, false);
          if (is_message) (me.rank() == 0 ? send(me, nothing, 1) : receive(me, nothing, 0))->wait(-1);
          if (!is_message) me.run(make_barrier(me.seat()));
          all_there(2);
          CHECK_EQUAL(mapped_files(), before + 1);  // the group's own
          all_there(3);
        },
        60, lending_only());
  }
  CHECK_EQUAL(mapped_files(), before);
}

SHIM_TEST(more_allocations_than_slots_are_sent_in_turn) {
  on_ranks(
      2,
      [](Rank& me) {
        constexpr unsigned count = lent_allocations + 3;
        std::vector<std::unique_ptr<Tensor>> tensors;
        for (unsigned i = 0; i < count; ++i)
          tensors.push_back(std::make_unique<Tensor>(message(2 * chunk + 1, me.rank() == 0 ? i : 0), true));
        for (unsigned round = 0; round < 2; ++round)
          for (unsigned i = 0; i < count; ++i) {
            pass_on(me, *tensors[i], message(2 * chunk + 1, i));
            CHECK(last_offered(me) == round * count + i + 1 && answer(me) == OfferAnswer::accepted);
          }
      },
      60, lending_only());
}

SHIM_TEST(nothing_is_written_to_a_lent_tensor_after_its_receive_was_withdrawn) {
  on_ranks(
      2,
      [](Rank& me) {
        const std::size_t bytes = 16 * chunk;
        Tensor tensor(message(bytes, 5), true);
        PointToPoint& messages = me.progress().messages();
        for (int time = 0; time < 200; ++time) {
          if (me.rank() == 0) {
            send(me, tensor, 1)->wait(-1);
          } else {
            Transfer transfer(tensor.view(), false, 0, 0);
            transfer.prepare();
            const std::uint64_t before = messages.pieces_moved();
            messages.post(transfer);
            while (messages.pieces_moved() == before) messages.advance();
            const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(time);
            while (std::chrono::steady_clock::now() < until) messages.advance();
            messages.withdraw(transfer);
            // The last byte of a chunk is what a writer of it comes to last.
            for (std::size_t end = chunk; end <= bytes; end += chunk) tensor.data()[end - 1] = 99;
            std::this_thread::sleep_for(std::chrono::microseconds(300));
            for (std::size_t end = chunk; end <= bytes; end += chunk)
              CHECK(transfer.is_exposed || tensor.data()[end - 1] == 99);
          }
          me.run(make_barrier(me.seat()));
        }
      },
      60, lending_only());
}

SHIM_TEST(a_receive_raises_when_the_sender_of_a_lent_tensor_gives_up_in_the_middle) {
  std::atomic<int> given_up{0};
  for (int time = 0; time < 10 || (given_up == 0 && time < 200); ++time)  // it may be too late, where others run
    on_ranks(
        2,
        [&given_up](Rank& me) {
          const Bytes right = message(64 * chunk, 5);
          if (me.rank() == 0) {
            auto tensor = std::make_unique<Tensor>(right, true);
            Transfer transfer(tensor->view(), true, 1, 0);
            transfer.prepare();
            PointToPoint& messages = me.progress().messages();
            messages.post(transfer);
            const CrossCopyState& copy = me.group().channel(0, 1).copy;
            // Until rank 1 has taken some chunks.
            while (static_cast<std::uint32_t>(copy.untaken.load()) < 4) std::this_thread::yield();
            messages.withdraw(transfer);
            std::fill_n(tensor->data(), right.size(), std::uint8_t{0});
            tensor.reset();
          } else {
            Tensor got(Bytes(right.size()), true);
            try {
              receive(me, got, 0)->wait(-1);
              CHECK(got.has(right));  // it was over before
            } catch (const Failure& failure) {
              CHECK(failure.kind == FailureKind::peer_lost);
              ++given_up;
            }
          }
        },
        60, lending_only());
  CHECK(given_up > 0);
}

// One thread's operations and another's messages lend the same tensors, while a third frees others.
SHIM_TEST(messages_and_operations_lend_at_the_same_time) {
  on_ranks(
      2,
      [](Rank& me) {
        constexpr unsigned times = 60;
        std::thread messenger([&me] {
          for (unsigned time = 0; time < times; ++time) {
            const Bytes right = message(some, time);
            Tensor tensor(me.rank() == 0 ? right : Bytes(some), true);
            if (me.rank() == 0) {
              send(me, tensor, 1)->wait(-1);
            } else {
              receive(me, tensor, 0)->wait(-1);
              CHECK(tensor.has(right));
            }
          }
        });
        for (unsigned time = 0; time < times; ++time) {
          Floats input(10'000, true, me.rank());
          Floats output(20'000, true, 100);
          me.run(make_all_gather(me.seat(), output.as("output"), input.as("input"), no_splits("output_splits")));
          CHECK(was_direct(me));
        }
        messenger.join();
      },
      60, lending_only());
}
