// Sums of floats have the same bits on every rank, whichever way the data went.
#include <cstring>
#include <random>

#include "collectives/reductions.hpp"
#include "tests/floats.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

using Outputs = std::vector<std::vector<float>>;  // of one collective after the other

bool are_same_bits(const std::vector<float>& one, const std::vector<float>& other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(float)) == 0;
}

// What every collective leaves on this rank; an all_reduce is first. Its slots are streamed, or written as it finds
// best.
Outputs outputs_of_all(Rank& me, std::size_t count, bool is_shared, bool streams_slots = false) {
  const auto size = static_cast<std::size_t>(me.size());
  const std::size_t all = count * size;
  const int root = me.size() - 1;
  Floats one(count, is_shared, me.rank());
  Floats whole(all, is_shared, 10 + me.rank());
  Outputs outputs;
  const auto leave = [&](std::size_t elements, const auto& make) {
    Floats output(elements, is_shared, 20 + me.rank());
    if (streams_slots) find_slow(me.group().ring_stores().times());
    me.run(make(output));
    outputs.push_back(output.values());
  };
  const auto seat = me.seat();
  const SplitArgument equal = no_splits("splits");
  leave(count, [&](Floats& to) { return make_all_reduce(seat, to.as("output"), one.as("input"), sum); });
  leave(count, [&](Floats& to) { return make_all_reduce(seat, to.as("output"), to.as("input"), sum); });
  leave(count, [&](Floats& to) { return make_reduce(seat, to.as("output"), one.as("input"), sum, root); });
  leave(count, [&](Floats& to) { return make_reduce_scatter(seat, to.as("output"), whole.as("input"), equal, sum); });
  leave(count, [&](Floats& to) { return make_broadcast(seat, to.as("tensor"), root); });
  leave(count, [&](Floats& to) { return make_scatter(seat, to.as("output"), whole.as("input"), equal, root); });
  leave(all, [&](Floats& to) { return make_all_gather(seat, to.as("output"), one.as("input"), equal); });
  leave(all, [&](Floats& to) { return make_gather(seat, to.as("output"), one.as("input"), equal, root); });
  leave(all, [&](Floats& to) { return make_all_to_all(seat, to.as("output"), whole.as("input"), equal, equal); });
  return outputs;
}

}  // namespace

SHIM_TEST(results_are_the_same_bits_on_every_rank) {
  constexpr std::size_t count = 50'000;
  std::vector<std::vector<float>> results(4);
  on_ranks(4, [&](Rank& me) {
    std::mt19937 random(static_cast<unsigned>(me.rank()));
    std::normal_distribution<float> normal;
    std::vector<float> data(count);
    for (float& x : data) x = normal(random);
    me.run(make_all_reduce(me.seat(), one("output", data), one("input", data), sum));
    results[static_cast<std::size_t>(me.rank())] = data;
  });
  for (const auto& result : results) CHECK(std::memcmp(result.data(), results[0].data(), count * sizeof(float)) == 0);
}

SHIM_TEST(every_way_to_reduce_gives_the_same_bits) {
  for (const int size : {2, 3, 4, 7})
    on_ranks(size, [](Rank& me) {
      constexpr std::size_t count = 60'000;  // two-shot, in several pieces
      std::mt19937 random(static_cast<unsigned>(me.rank()));
      std::normal_distribution<float> normal;
      std::vector<float> input(count);
      for (float& x : input) x = normal(random);
      std::vector<float> whole(count);
      me.run(make_all_reduce(me.seat(), one("output", whole), one("input", input), sum));
      for (const std::size_t part : {std::size_t{10}, std::size_t{5'000}}) {  // in the arrival lines, and one-shot
        std::vector<float> some(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(part));
        me.run(make_all_reduce(me.seat(), one("output", some), one("input", some), sum));
        CHECK(std::memcmp(some.data(), whole.data(), part * sizeof(float)) == 0);
      }
      std::vector<float> at_root(count);
      me.run(make_reduce(me.seat(), one("output", at_root), one("input", input), sum, 0));
      if (me.rank() == 0) CHECK(std::memcmp(at_root.data(), whole.data(), count * sizeof(float)) == 0);
      const std::size_t each = count / static_cast<std::size_t>(me.size());
      input.resize(each * static_cast<std::size_t>(me.size()));
      std::vector<float> part(each);
      me.run(make_reduce_scatter(me.seat(), one("output", part), one("input", input), no_splits("input_splits"), sum));
      CHECK(std::memcmp(part.data(), whole.data() + each * static_cast<std::size_t>(me.rank()), each * sizeof(float)) ==
            0);
    });
}

SHIM_TEST(reductions_larger_than_the_caches_give_the_same_bits) {
  on_ranks(2, [](Rank& me) {
    constexpr std::size_t count = 4'000'002;  // 16 MB for each rank, and not whole blocks
    std::mt19937 random(static_cast<unsigned>(me.rank()));
    std::vector<float> input(count);
    for (float& x : input) x = static_cast<float>(random()) / static_cast<float>(1 + random() % 1000);
    std::vector<float> whole(count);
    me.run(make_reduce(me.seat(), one("output", whole), one("input", input), sum, 0));
    me.run(make_broadcast(me.seat(), one("tensor", whole), 0));
    std::vector<float> part(count / 2);
    me.run(make_reduce_scatter(me.seat(), one("output", part), one("input", input), no_splits("input_splits"), sum));
    CHECK(std::memcmp(part.data(), whole.data() + part.size() * static_cast<std::size_t>(me.rank()),
                      part.size() * sizeof(float)) == 0);
    me.run(make_all_reduce(me.seat(), one("output", input), one("input", input), sum));
    CHECK(std::memcmp(input.data(), whole.data(), count * sizeof(float)) == 0);
  });
}

SHIM_TEST(thresholds_change_no_bit) {
  constexpr std::uint64_t never = std::uint64_t{1} << 40;
  // One-shot, lend, piece, stream, swap, claim: from the first byte on, never, and the ways to reduce with and without
  // streaming.
  const std::vector<Thresholds> several = {usual_thresholds(),
                                           {0, 0, cell_unit, 0, 1, 0},
                                           {never, never, ring_slot_bytes, never, never, 0},
                                           {never, never, ring_slot_bytes, never, 1, never},
                                           {never, 0, 4096 + cell_unit, 0, never, never},
                                           {0, never, 4096, 0, never, 0}};
  for (const int size : {2, 3, 4, 7})
    for (const bool is_shared : {false, true})
      for (const std::size_t count : {std::size_t{3}, std::size_t{333}, std::size_t{9'001}}) {
        std::vector<std::vector<Outputs>> results;  // by thresholds and rank
        for (const Thresholds& thresholds : several) {
          std::vector<Outputs>& by_rank = results.emplace_back(static_cast<std::size_t>(size));
          const auto body = [&](Rank& me) {
            by_rank[static_cast<std::size_t>(me.rank())] = outputs_of_all(me, count, is_shared);
          };
          on_ranks(size, body, 60, thresholds);
          for (const Outputs& outputs : by_rank) CHECK(are_same_bits(outputs[0], by_rank[0][0]));
        }
        for (std::size_t one = 0; one < several.size(); ++one)
          for (std::size_t other = 0; other < one; ++other)
            for (std::size_t rank = 0; rank < static_cast<std::size_t>(size); ++rank)
              CHECK(std::equal(results[one][rank].begin(), results[one][rank].end(), results[other][rank].begin(),
                               results[other][rank].end(), are_same_bits));
      }
}

SHIM_TEST(how_slots_are_written_changes_no_bit) {
  constexpr std::uint64_t never = std::uint64_t{1} << 40;
  const std::vector<Thresholds> several = {usual_thresholds(), {0, never, 64 * 1024, 0, never, 0}};
  for (const Thresholds& thresholds : several)
    for (const int size : {2, 3, 7})
      for (const std::size_t count : {std::size_t{9'001}, std::size_t{90'007}}) {
        std::vector<std::vector<Outputs>> results;  // by how many ranks do not stream, and rank
        for (const int cached : {size, size / 2, 0}) {
          std::vector<Outputs>& by_rank = results.emplace_back(static_cast<std::size_t>(size));
          const auto body = [&](Rank& me) {
            by_rank[static_cast<std::size_t>(me.rank())] = outputs_of_all(me, count, false, me.rank() >= cached);
          };
          on_ranks(size, body, 60, thresholds);
        }
        for (const std::vector<Outputs>& by_rank : results)
          for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
            CHECK(std::equal(by_rank[rank].begin(), by_rank[rank].end(), results[0][rank].begin(),
                             results[0][rank].end(), are_same_bits));
      }
}
