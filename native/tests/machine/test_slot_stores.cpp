// When slots are written past the caches, and that every byte gets there whichever way.
#include "machine/slot_stores.hpp"

#include <vector>

#include "tests/check.hpp"

using namespace shim;

namespace {

constexpr std::chrono::nanoseconds fast{timed_bytes / 10};
constexpr std::chrono::nanoseconds slow{timed_bytes / 2};

// Pieces until one is to be timed, with that one.
int pieces_until_timed(SlotTimes& times) {
  for (int pieces = 1;; ++pieces)
    if (times.time_next()) return pieces;
}

SlotTimes streaming() {
  SlotTimes times;
  for (int i = 0; i < SlotTimes::enough; ++i) times.add(slow);
  CHECK(times.stream());
  return times;
}

}  // namespace

SHIM_TEST(slow_times_in_a_row_make_a_rank_stream) {
  SlotTimes times;
  for (int i = 1; i < SlotTimes::enough; ++i) {
    times.add(slow);
    CHECK(!times.stream());
    CHECK(times.time_next());  // at once, while it is in doubt
  }
  times.add(slow);
  CHECK(times.stream());
}

SHIM_TEST(a_slow_time_among_fast_ones_does_not) {
  SlotTimes times;
  for (int i = 0; i < 100; ++i) {
    times.add(i % 2 == 0 ? std::chrono::seconds(1) : fast);
    CHECK(!times.stream());
  }
}

SHIM_TEST(a_fast_time_brings_the_caches_back_and_a_slow_one_ends_that) {
  SlotTimes times = streaming();
  times.add(slow);
  CHECK(times.stream());
  times.add(fast);
  CHECK(!times.stream() && times.time_next());
  times.add(slow);
  CHECK(times.stream());
  for (int i = 0; i < 10; ++i) times.add(fast);
  for (int i = 1; i < SlotTimes::enough; ++i) times.add(slow);
  CHECK(!times.stream());
}

SHIM_TEST(few_pieces_are_timed_where_nothing_is_in_doubt) {
  SlotTimes times;
  CHECK_EQUAL(pieces_until_timed(times), SlotTimes::cached_for_each_timed);
  times.add(fast);
  CHECK_EQUAL(pieces_until_timed(times), SlotTimes::cached_for_each_timed);
  SlotTimes slow_times = streaming();
  CHECK_EQUAL(pieces_until_timed(slow_times), SlotTimes::streamed_for_each_timed);
  slow_times.add(slow);
  CHECK_EQUAL(pieces_until_timed(slow_times), SlotTimes::streamed_for_each_timed);
}

SHIM_TEST(pieces_are_copied_whole_whichever_way) {
  for (const std::size_t bytes :
       {std::size_t{1}, streamed_from - 1, streamed_from, streamed_from + 1, 5 * streamed_from + 7})
    for (const std::size_t start : {0, 64, 3}) {
      SlotStores stores;
      for (int piece = 0; piece < 200; ++piece) {  // some of which are timed, however that turns out
        if (piece % 20 == 10)
          for (int i = 0; i < SlotTimes::enough; ++i) stores.times().add(slow);
        CHECK_EQUAL(stores.stream(bytes), bytes >= streamed_from && stores.times().stream());
        const std::vector<std::byte> from(bytes, static_cast<std::byte>(1 + piece));
        std::vector<std::byte> to(start + bytes + 70);
        stores.copy(to.data() + start, from.data(), bytes);
        for (std::size_t i = 0; i < to.size(); ++i)
          CHECK(to[i] == (i >= start && i < start + bytes ? from[0] : std::byte{0}));
      }
    }
}
