// What goes one way: who fills slots for it, and who claims what was read.
#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

SHIM_TEST(a_root_that_nobody_reads_fills_nothing) {
  on_ranks(3, [](Rank& me) {
    constexpr int root = 1;
    std::vector<std::int64_t> input(500, me.rank() + 1);
    std::vector<std::int64_t> output(1'500);
    const auto filled = [&](int rank) {
      return me.group().arrival(rank, me.group().sequence).filled != SlotSize::none;
    };
    std::vector<std::int64_t> sums(500);
    me.run(make_reduce(me.seat(), one("output", sums), one("input", input), {ReduceOp::sum, 1.0}, root));
    for (int rank = 0; rank < 3; ++rank) CHECK_EQUAL(filled(rank), rank != root);
    CHECK_EQUAL(sums[499], me.rank() == root ? 6 : 0);
    me.run(make_gather(me.seat(), one("output", output), one("input", input), no_splits("output_splits"), root));
    for (int rank = 0; rank < 3; ++rank) CHECK_EQUAL(filled(rank), rank != root);
    CHECK_EQUAL(output[1'499], me.rank() == root ? 3 : 0);
    me.run(make_barrier(me.seat()));
  });
}

SHIM_TEST(claiming_what_the_longer_of_two_parts_has_more_changes_nothing) {
  on_ranks(2, [](Rank& me) {
    constexpr std::size_t counts[] = {1'500, 3'000};
    std::vector<std::int64_t> mine(counts[me.rank()]);
    std::vector<std::int64_t> all(counts[0] + counts[1]);
    const SplitArgument rows{"output_splits", {{counts[0], counts[1]}}};
    for (std::int64_t call = 0; call < 12; ++call) {
      std::fill(mine.begin(), mine.end(), 10 * call + me.rank());
      me.run(make_all_gather(me.seat(), one("output", all), one("input", mine), rows));
      for (std::size_t i = 0; i < all.size(); ++i) CHECK_EQUAL(all[i], 10 * call + (i < counts[0] ? 0 : 1));
    }
  });
}
