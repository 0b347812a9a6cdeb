// Rooms of the slots between two ranks: who answers a message writes where it has read that, and nothing gets lost.
#include <bit>
#include <random>

#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

constexpr std::size_t bytes = 1000;  // of a piece that needs room

std::vector<std::int64_t> message(std::size_t number, std::size_t count) {
  std::vector<std::int64_t> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<std::int64_t>(number * 1'000'000 + i);
  return data;
}

// Two ranks in one thread.
struct Pair {
  std::shared_ptr<Segment> segment = std::make_shared<Segment>(memory_for(2, usual_thresholds(), false));
  Group groups[2] = {{"test", {0, 1}, 0, 10, segment}, {"test", {0, 1}, 1, 10, segment}};
  ChannelRooms rooms[2] = {{groups[0], 1}, {groups[1], 0}};

  // What the receiver of channel `from` to `to` has exchanged.
  void see(int from, int to) { rooms[from].see_exchanged(groups[from].channel(from, to).exchanged.load()); }
};

}  // namespace

SHIM_TEST(an_answer_is_written_where_its_message_was_read) {
  Pair pair;
  auto& [first, second] = pair.rooms;
  const std::byte* const one = first.to_fill(0, bytes);
  CHECK(second.to_read(0, bytes) == one);
  second.exchange(0, 0, 0);
  const std::byte* const other = second.to_fill(0, bytes);
  CHECK(other != one);  // it has not filled its slot before, which the first rank has not read then
  CHECK(first.to_read(0, bytes) == other);
  first.exchange(0, 1, 1);
  for (std::uint64_t number = channel_slots; number < 5 * channel_slots; number += channel_slots) {
    pair.see(0, 1);
    CHECK(first.to_fill(number, bytes) == other);
    CHECK(second.to_read(number, bytes) == other);
    second.exchange(number, number, number);
    pair.see(1, 0);
    CHECK(second.to_fill(number, bytes) == other);
    CHECK(first.to_read(number, bytes) == other);
    first.exchange(number, number + 1, number + 1);
  }
}

SHIM_TEST(a_room_stays_where_its_slot_is_not_known_to_be_empty) {
  Pair pair;
  auto& [first, second] = pair.rooms;
  const std::byte* const mine = second.to_fill(1, bytes);
  const std::byte* const one = first.to_fill(1, bytes);
  CHECK(second.to_read(1, bytes) == one);
  second.exchange(1, 2, 0);  // slots 0 and 1 are filled, and neither is known to be empty
  CHECK(second.to_fill(1 + channel_slots, bytes) == mine);
  second.exchange(1, 2, 1);  // slot 0 is
  CHECK(second.to_fill(1 + channel_slots, bytes) == mine);
  second.exchange(1, 2, 2);
  CHECK(second.to_fill(1 + channel_slots, bytes) == one);
}

SHIM_TEST(a_slot_is_one_way_until_its_room_is_filled_and_again_when_that_is_exchanged) {
  Pair pair;
  auto& [first, second] = pair.rooms;
  first.to_fill(0, bytes);
  CHECK(second.is_one_way(0));
  second.to_fill(0, sizeof(ChannelSlot::small));
  CHECK(second.is_one_way(0));
  second.to_fill(0, bytes);
  CHECK(!second.is_one_way(0) && second.is_one_way(1));
  second.exchange(0, 1, 0);  // not known to be empty
  CHECK(!second.is_one_way(0));
  second.exchange(0, 1, 1);
  CHECK(second.is_one_way(0));
}

SHIM_TEST(one_answer_does_not_keep_what_follows_from_being_one_way) {
  on_ranks(2, [](Rank& me) {
    std::vector<std::int64_t> data(1024);  // enough to be claimed
    const auto pass = [&](int from) {
      TransferTask(me.progress(), view_of(data), me.rank() == from, 1 - me.rank(), 0).wait(-1);
      me.run(make_barrier(me.seat()));
    };
    pass(1);
    CHECK_EQUAL(me.group().channel(0, 1).exchanged.load(), 0U);
    for (std::size_t i = 0; i < channel_slots; ++i) pass(0);
    const std::uint32_t exchanged = me.group().channel(0, 1).exchanged.load();
    CHECK_EQUAL(std::popcount(exchanged), 1);  // in the slot of the same index as the one that it had sent in
    for (std::size_t i = 0; i < channel_slots; ++i) pass(0);
    CHECK_EQUAL(me.group().channel(0, 1).exchanged.load(), exchanged);
  });
}

SHIM_TEST(small_pieces_need_no_room) {
  Pair pair;
  auto& [first, second] = pair.rooms;
  const std::byte* const small = first.to_fill(0, sizeof(ChannelSlot::small));
  CHECK(small == pair.groups[0].channel_slot(0, 1, 0).small);
  CHECK(second.to_read(0, sizeof(ChannelSlot::small)) == small);
}

SHIM_TEST(every_answer_is_written_where_its_message_was_read) {
  on_ranks(2, [](Rank& me) {
    std::vector<std::int64_t> data(bytes / sizeof(std::int64_t));
    for (std::size_t i = 0; i < 4 * channel_slots; ++i) {
      const bool sends = (i % 2 == 0) == (me.rank() == 0);
      TransferTask(me.progress(), view_of(data), sends, 1 - me.rank(), 0).wait(-1);
    }
    // Each slot was filled twice. At its first answer there was nothing to exchange.
    if (me.rank() == 1) CHECK_EQUAL(me.group().channel(0, 1).exchanged.load(), (1U << channel_slots) - 1);
    if (me.rank() == 0) CHECK_EQUAL(me.group().channel(1, 0).exchanged.load(), 0U);
  });
}

SHIM_TEST(messages_of_all_sizes_go_both_ways_in_any_order) {
  for (const unsigned seed : {1u, 2u, 3u})
    on_ranks(2, [seed](Rank& me) {
      constexpr std::size_t messages = 3000;
      constexpr std::size_t at_once = 16;  // so many sends of a rank are not waited for
      std::mt19937 random(seed);
      std::vector<std::vector<std::int64_t>> data(messages);
      std::vector<std::unique_ptr<TransferTask>> sent(messages);
      unsigned sender = 0;
      for (std::size_t number = 0; number < messages; ++number) {
        constexpr std::size_t counts[] = {0, 3, 4, 50, 1000, 8192, 8193, 20'000};
        const std::size_t count = counts[random() % (number % 100 < 90 ? 5 : 8)];
        if (random() % 4 > seed - 1) sender = 1 - sender;  // answers, and several one way
        if (static_cast<int>(sender) == me.rank()) {
          data[number] = message(number, count);
          sent[number] = std::make_unique<TransferTask>(me.progress(), view_of(data[number]), true, 1 - me.rank(), 0);
          sent[number]->start();
          if (number >= at_once && sent[number - at_once]) sent[number - at_once]->wait(-1);
        } else {
          std::vector<std::int64_t> got(count, -1);
          TransferTask(me.progress(), view_of(got), false, 1 - me.rank(), 0).wait(-1);
          CHECK(got == message(number, count));
        }
      }
      for (const auto& task : sent)
        if (task) task->wait(-1);
    });
}
