// How thresholds follow from the machine, and that a group has those that rank 0 has written.
#include "machine/thresholds.hpp"

#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

constexpr std::size_t kib = 1024;
constexpr std::uint64_t never = std::uint64_t{1} << 48;
// On which the ways were compared, with two processors.
constexpr Machine measured{{60, 95'000, 14'000, 200, 200}, 1024 * kib, 32 * 1024 * kib};

Machine with(std::uint64_t line_ns, std::uint64_t copy_bytes_per_us, std::uint64_t cross_bytes_per_us = 10'000) {
  return {{line_ns, copy_bytes_per_us, cross_bytes_per_us, 200, 200}, measured.second_cache, measured.last_cache};
}

}  // namespace

SHIM_TEST(where_the_ways_were_compared_they_change_at_the_sizes_seen) {
  // As it was measured there at different times.
  for (const Machine& machine : {measured, with(33, 95'000), with(65, 113'000), with(40, 78'000),
                                 with(usual_speeds.line_ns, usual_speeds.copy_bytes_per_us)})
    CHECK(thresholds_for(machine, 2, 2) == (Thresholds{64 * kib, 32 * kib, 128 * kib, 24 * 1024 * kib, never, never}));
  CHECK_EQUAL(thresholds_for(measured, 4, 2).one_shot, 32 * kib);
  CHECK_EQUAL(thresholds_for(measured, 8, 2).one_shot, 16 * kib);
}

SHIM_TEST(waits_that_cost_more_are_avoided_up_to_larger_sizes) {
  const Thresholds near = thresholds_for(with(10, 95'000), 2, 2);
  const Thresholds far = thresholds_for(with(300, 95'000), 2, 2);
  CHECK(near.one_shot < 64 * kib && far.one_shot > 64 * kib);
  CHECK(near.lend < 32 * kib && far.lend > 32 * kib);
  CHECK(thresholds_for(measured, 8, 1).one_shot > thresholds_for(measured, 8, 8).one_shot);
  CHECK(thresholds_for(measured, 8, 8).one_shot < thresholds_for(measured, 2, 8).one_shot);
}

SHIM_TEST(pieces_and_streaming_follow_the_caches) {
  const auto pieces = [](std::size_t cache) {
    return thresholds_for({usual_speeds, cache, 8 * 1024 * kib}, 2, 2).piece;
  };
  CHECK_EQUAL(pieces(256 * kib), 64 * kib);
  CHECK_EQUAL(pieces(1280 * kib), 128 * kib);
  CHECK_EQUAL(pieces(2048 * kib), 256 * kib);
  CHECK_EQUAL(pieces(64 * 1024 * kib), ring_slot_bytes);
  CHECK_EQUAL(thresholds_for({usual_speeds, 1024 * kib, 8 * 1024 * kib}, 2, 2).stream, 6 * 1024 * kib);
}

SHIM_TEST(two_ranks_swap_across_where_the_kernel_is_at_least_about_half_as_fast) {
  const auto swap_of = [](std::uint64_t speed, int ranks) {
    return thresholds_for(with(60, 50'000, speed), ranks, 2).swap;
  };
  CHECK_EQUAL(swap_of(28'000, 2), 512 * kib);
  CHECK_EQUAL(swap_of(20'000, 2), 512 * kib);
  CHECK_EQUAL(swap_of(15'000, 2), never);
  CHECK_EQUAL(swap_of(28'000, 3), never);
  set_cross_memory_from(7);
  const std::uint64_t chosen = swap_of(0, 8);
  set_cross_memory_from(0);
  CHECK_EQUAL(chosen, std::uint64_t{7});
}

SHIM_TEST(what_is_read_is_claimed_where_that_spares_the_writer_a_third) {
  const auto claim_of = [](std::uint64_t rewrite_ns, std::uint64_t claimed_rewrite_ns) {
    return thresholds_for({{60, 50'000, 8'000, rewrite_ns, claimed_rewrite_ns}, kib, kib}, 2, 2).claim;
  };
  CHECK_EQUAL(thresholds_for({{60, 50'000, 8'000, 600, 150}, kib, kib}, 3, 2).claim, never);  // they share caches
  CHECK_EQUAL(claim_of(600, 150), 4 * kib);
  CHECK_EQUAL(claim_of(300, 200), 4 * kib);
  CHECK_EQUAL(claim_of(300, 201), never);
  CHECK_EQUAL(claim_of(200, 300), never);
}

SHIM_TEST(whatever_is_measured_gives_thresholds_that_are_possible) {
  for (const std::uint64_t line_ns : {0, 1, 5, 1'000, 1'000'000})
    for (const std::uint64_t copied : {0, 1, 1'000, 1'000'000, 1'000'000'000})
      for (const std::size_t cache : {std::size_t{0}, std::size_t{1}, std::size_t{1} << 45})
        for (const int ranks : {1, 2, 3, 512})
          for (const int processors : {0, 1, 4096}) {
            const Thresholds all =
                thresholds_for({{line_ns, copied, copied / 4, line_ns, copied}, cache, cache}, ranks, processors);
            CHECK(are_possible(all, ring_slot_bytes));
            CHECK(all.one_shot >= 4 * kib && all.one_shot <= 256 * kib && all.lend >= 8 * kib && all.lend <= 256 * kib);
            CHECK(all.piece >= 64 * kib && all.stream >= 1024 * kib);
          }
}

SHIM_TEST(a_group_has_what_rank_zero_has_written) {
  const Thresholds chosen{1, 2, 192, 3, 4, 5};
  on_ranks(3, [&](Rank& me) { CHECK(me.group().thresholds() == chosen); }, 60, chosen);
}

SHIM_TEST(what_no_rank_zero_writes_is_refused) {
  constexpr std::uint64_t endless = ~std::uint64_t{0};
  for (const Thresholds& wrong :
       {Thresholds{}, Thresholds{0, 0, 65, 0, 0, 0}, Thresholds{0, 0, 2 * ring_slot_bytes, 0, 0, 0},
        Thresholds{endless, 0, 64, 0, 0, 0}, Thresholds{0, endless, 64, 0, 0, 0}, Thresholds{0, 0, 64, endless, 0, 0},
        Thresholds{0, 0, 64, 0, endless, 0}, Thresholds{0, 0, 64, 0, 0, endless},
        Thresholds{0, 0, endless - 63, 0, 0, 0}})
    try {
      on_ranks(2, [](Rank&) {}, 60, wrong);
      throw std::runtime_error("not refused");
    } catch (const Failure& failure) {
      CHECK(failure.kind == FailureKind::engine);
    }
}
