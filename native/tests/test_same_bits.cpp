// Sums of floats have the same bits on every rank, whichever way the data went.
#include <cstring>
#include <random>

#include "ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

constexpr Reduction sum{ReduceOp::sum, 1.0};

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
