// Long messages of tensors in shared memory, copied from the one to the other: which ends lie there, and what is freed.
// How they are offered, and end in the middle, is in test_offers.cpp.
#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "group/loans.hpp"
#include "lending/shared_allocation.hpp"
#include "tests/cross_memory.hpp"
#include "tests/floats.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

constexpr std::size_t some = 3 * chunk + 77;  // more than fits the channel of so few ranks

// From rank 0 to rank 1, which waits for it and checks it.
void pass_on(Rank& me, Tensor& tensor, const Bytes& right) {
  const auto task = me.rank() == 0 ? send(me, tensor.view(), 1) : receive(me, tensor.view(), 0);
  if (me.rank() == 1) task->start();
  me.run(make_barrier(me.seat()));
  task->wait(-1);
  CHECK(me.rank() == 0 || tensor.has(right));
}

// Of the messages from rank 0 to rank 1, of which the first has the number 1.
OfferAnswer answer(Rank& me) { return me.group().channel(0, 1).answer; }
std::uint64_t last_offered(Rank& me) { return me.group().channel(0, 1).answered.load() - first_number(); }

}  // namespace

SHIM_TEST(a_send_that_fits_the_channel_ends_at_once) {
  on_ranks(2, [](Rank& me) {
    const Bytes right = message(channel_slots * me.group().layout().channel_payload_bytes(), 3);
    Tensor tensor(me.rank() == 0 ? right : Bytes(right.size()), true);
    if (me.rank() == 0) send(me, tensor.view(), 1)->wait(-1);
    me.run(make_barrier(me.seat()));
    if (me.rank() == 1) receive(me, tensor.view(), 0)->wait(-1);
    CHECK(tensor.has(right));
    CHECK_EQUAL(me.group().channel(0, 1).answered.load(), std::uint64_t{0});
  });
}

// Both tensors, one of them, or none in shared memory.
SHIM_TEST(either_end_may_be_private) {
  on_ranks(2, [](Rank& me) {
    std::uint64_t offered = 0;
    for (unsigned time = 0; time < 8; ++time) {
      const bool is_source_shared = time % 2 == 0;
      const Bytes right = message(some, time);
      Tensor tensor(me.rank() == 0 ? right : Bytes(some), me.rank() == 0 ? is_source_shared : time % 4 < 2);
      pass_on(me, tensor, right);
      if (is_source_shared) offered = time + 1;
      CHECK_EQUAL(last_offered(me), offered);
      CHECK(answer(me) == OfferAnswer::accepted);
    }
  });
}

SHIM_TEST(what_cannot_be_mapped_goes_through_the_channel) {
  for (const bool is_readable : {true, false})
    on_ranks(2, [is_readable](Rank& me) {
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
        CHECK(answer(me) == (is_readable ? OfferAnswer::declined : OfferAnswer::never));
      }
      CHECK_EQUAL(last_offered(me), std::uint64_t{is_readable ? 3u : 1u});
    });
}

// Which the next message sees to, and the next operation.
SHIM_TEST(what_was_sent_and_freed_is_mapped_by_nobody) {
  const std::size_t before = mapped_files();
  for (const bool is_message : {true, false}) {
    std::atomic<int> arrived{0};
    const auto all_there = [&arrived](int times) {
      for (arrived.fetch_add(1); arrived.load() < 2 * times;) std::this_thread::yield();
    };
    on_ranks(2, [&](Rank& me) {
      for (unsigned cycle = 0; cycle < lent_allocations + 40; ++cycle) {
        const Bytes right = message(2 * chunk + 1, cycle);
        Tensor tensor(me.rank() == 0 ? right : Bytes(right.size()), true);
        pass_on(me, tensor, right);
        CHECK(last_offered(me) == cycle + 1 && answer(me) == OfferAnswer::accepted);
      }
      all_there(1);
      Tensor nothing({}, false);
      if (is_message) (me.rank() == 0 ? send(me, nothing.view(), 1) : receive(me, nothing.view(), 0))->wait(-1);
      if (!is_message) me.run(make_barrier(me.seat()));
      all_there(2);
      CHECK_EQUAL(mapped_files(), before + 1);  // the group's own
      all_there(3);
    });
  }
  CHECK_EQUAL(mapped_files(), before);
}

SHIM_TEST(more_allocations_than_slots_are_sent_in_turn) {
  on_ranks(2, [](Rank& me) {
    constexpr unsigned count = lent_allocations + 3;
    std::vector<std::unique_ptr<Tensor>> tensors;
    for (unsigned i = 0; i < count; ++i)
      tensors.push_back(std::make_unique<Tensor>(message(2 * chunk + 1, me.rank() == 0 ? i : 0), true));
    for (unsigned round = 0; round < 2; ++round)
      for (unsigned i = 0; i < count; ++i) {
        pass_on(me, *tensors[i], message(2 * chunk + 1, i));
        CHECK(last_offered(me) == round * count + i + 1 && answer(me) == OfferAnswer::accepted);
      }
  });
}

// One thread's operations, another's messages.
SHIM_TEST(messages_and_operations_lend_at_the_same_time) {
  on_ranks(2, [](Rank& me) {
    constexpr unsigned times = 60;
    const auto messages = [&me] {
      for (unsigned time = 0; time < times; ++time) {
        const Bytes right = message(some, time);
        Tensor tensor(me.rank() == 0 ? right : Bytes(some), true);
        (me.rank() == 0 ? send(me, tensor.view(), 1) : receive(me, tensor.view(), 0))->wait(-1);
        CHECK(tensor.has(right));
      }
    };
    std::future<void> messenger = std::async(std::launch::async, messages);
    for (unsigned time = 0; time < times; ++time) {
      Floats input(10'000, true, me.rank());
      Floats output(20'000, true, 100);
      me.run(make_all_gather(me.seat(), output.as("output"), input.as("input"), no_splits("output_splits")));
      CHECK(was_direct(me));
      check_gathered(me, output, 10'000);
    }
    messenger.get();
  });
}
