// Every collective against plain loops: sizes within an arrival line, within a chunk and over many, on every rank.
#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

// Within a line, at its end, past it; within a chunk, at its end, past it; over several chunks.
constexpr std::size_t counts[] = {0, 1, 5, 6, 100, 16384, 16385, 70001};

// Distinct for every rank and place.
std::int64_t value(int rank, std::size_t at) {
  return std::int64_t{1'000'003} * (rank + 1) + 7 * static_cast<std::int64_t>(at);
}

std::vector<std::int64_t> values(int rank, std::size_t count, std::size_t first = 0) {
  std::vector<std::int64_t> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = value(rank, first + i);
  return data;
}

std::int64_t sum_at(int size, std::size_t at) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < size; ++rank) sum += value(rank, at);
  return sum;
}

void for_all_sizes(const std::function<void(Rank&, std::size_t)>& body) {
  for (const int size : world_sizes)
    on_ranks(size, [&](Rank& me) {
      for (const std::size_t count : counts) body(me, count);
    });
}

}  // namespace

SHIM_TEST(broadcast_copies_the_root) {
  for_all_sizes([](Rank& me, std::size_t count) {
    for (int root = 0; root < me.size(); ++root) {
      auto data = values(me.rank(), count);
      me.run(make_broadcast(me.seat(), one("tensor", data), root));
      CHECK(data == values(root, count));
    }
  });
}

SHIM_TEST(all_reduce_sums_in_place_and_apart) {
  for_all_sizes([](Rank& me, std::size_t count) {
    auto data = values(me.rank(), count);
    std::vector<std::int64_t> apart(count, -1);
    me.run(make_all_reduce(me.seat(), one("output", apart), one("input", data), sum));
    CHECK(data == values(me.rank(), count));
    me.run(make_all_reduce(me.seat(), one("output", data), one("input", data), sum));
    for (std::size_t i = 0; i < count; ++i) CHECK_EQUAL(data[i], sum_at(me.size(), i));
    CHECK(apart == data);
  });
}

SHIM_TEST(reduce_writes_on_the_root_alone) {
  for_all_sizes([](Rank& me, std::size_t count) {
    const int root = me.size() - 1;
    auto data = values(me.rank(), count);
    me.run(make_reduce(me.seat(), one("output", data), one("input", data), sum, root));
    for (std::size_t i = 0; i < count; ++i)
      CHECK_EQUAL(data[i], me.rank() == root ? sum_at(me.size(), i) : value(me.rank(), i));
  });
}

SHIM_TEST(all_gather_and_gather_keep_rank_order) {
  for_all_sizes([](Rank& me, std::size_t count) {
    const auto size = static_cast<std::size_t>(me.size());
    auto mine = values(me.rank(), count);
    std::vector<std::int64_t> all(count * size, -1);
    const auto check = [&] {
      for (int rank = 0; rank < me.size(); ++rank)
        for (std::size_t i = 0; i < count; ++i)
          CHECK_EQUAL(all[static_cast<std::size_t>(rank) * count + i], value(rank, i));
    };
    me.run(make_all_gather(me.seat(), one("output", all), one("input", mine), no_splits("output_splits")));
    check();
    std::fill(all.begin(), all.end(), -1);
    me.run(make_gather(me.seat(), one("output", all), one("input", mine), no_splits("output_splits"), 0));
    if (me.rank() == 0) check();
    if (me.rank() != 0) CHECK(std::all_of(all.begin(), all.end(), [](std::int64_t x) { return x == -1; }));
  });
}

SHIM_TEST(all_gather_takes_its_own_part_of_the_output_as_input) {
  for_all_sizes([](Rank& me, std::size_t count) {
    const auto size = static_cast<std::size_t>(me.size());
    std::vector<std::int64_t> all(count * size, -1);
    TensorArgument mine = one("input", all, {static_cast<std::int64_t>(count)});
    mine.single->data += static_cast<std::size_t>(me.rank()) * count * sizeof(std::int64_t);
    for (std::size_t i = 0; i < count; ++i) all[static_cast<std::size_t>(me.rank()) * count + i] = value(me.rank(), i);
    me.run(make_all_gather(me.seat(), one("output", all), mine, no_splits("output_splits")));
    for (int rank = 0; rank < me.size(); ++rank)
      for (std::size_t i = 0; i < count; ++i)
        CHECK_EQUAL(all[static_cast<std::size_t>(rank) * count + i], value(rank, i));
  });
}

SHIM_TEST(scatter_and_reduce_scatter_give_each_its_part) {
  for_all_sizes([](Rank& me, std::size_t count) {
    const auto size = static_cast<std::size_t>(me.size());
    const int root = me.size() / 2;
    const std::size_t start = static_cast<std::size_t>(me.rank()) * count;
    auto whole = values(me.rank(), count * size);
    std::vector<std::int64_t> part(count, -1);
    me.run(make_scatter(me.seat(), one("output", part), one("input", whole), no_splits("input_splits"), root));
    CHECK(part == values(root, count, start));
    me.run(make_reduce_scatter(me.seat(), one("output", part), one("input", whole), no_splits("input_splits"), sum));
    for (std::size_t i = 0; i < count; ++i) CHECK_EQUAL(part[i], sum_at(me.size(), start + i));
  });
}

SHIM_TEST(all_to_all_exchanges_even_in_place) {
  for_all_sizes([](Rank& me, std::size_t count) {
    const auto size = static_cast<std::size_t>(me.size());
    auto data = values(me.rank(), count * size);
    me.run(make_all_to_all(me.seat(), one("output", data), one("input", data), no_splits("output_splits"),
                           no_splits("input_splits")));
    for (int from = 0; from < me.size(); ++from)
      for (std::size_t i = 0; i < count; ++i)
        CHECK_EQUAL(data[static_cast<std::size_t>(from) * count + i],
                    value(from, static_cast<std::size_t>(me.rank()) * count + i));
  });
}

SHIM_TEST(unequal_parts_some_of_them_empty) {
  for (const std::size_t unit : {1, 900, 20'000})
    for (const int size : world_sizes)
      on_ranks(size, [&](Rank& me) {
        const auto rows = [&](int from, int to) { return static_cast<std::size_t>((from * 2 + to * 3) % 4) * unit; };
        std::vector<std::vector<std::int64_t>> inputs, outputs, gathered, scattered;
        for (int peer = 0; peer < me.size(); ++peer) {
          inputs.push_back(values(me.rank(), rows(me.rank(), peer), static_cast<std::size_t>(peer)));
          outputs.emplace_back(rows(peer, me.rank()), -1);
          gathered.emplace_back(rows(peer, 0), -1);
          scattered.push_back(values(me.rank(), rows(0, peer)));
        }
        me.run(make_all_to_all(me.seat(), list("output", outputs), list("input", inputs), no_splits("output_splits"),
                               no_splits("input_splits")));
        for (int peer = 0; peer < me.size(); ++peer)
          CHECK(outputs[static_cast<std::size_t>(peer)] ==
                values(peer, rows(peer, me.rank()), static_cast<std::size_t>(me.rank())));

        auto mine = values(me.rank(), rows(me.rank(), 0));
        me.run(make_all_gather(me.seat(), list("output", gathered), one("input", mine), no_splits("output_splits")));
        for (int peer = 0; peer < me.size(); ++peer)
          CHECK(gathered[static_cast<std::size_t>(peer)] == values(peer, rows(peer, 0)));

        std::vector<std::int64_t> part(rows(0, me.rank()), -1);
        me.run(make_scatter(me.seat(), one("output", part), list("input", scattered), no_splits("input_splits"), 0));
        CHECK(part == values(0, rows(0, me.rank())));
        me.run(make_reduce_scatter(me.seat(), one("output", part), list("input", scattered), no_splits("input_splits"),
                                   sum));
        for (std::size_t i = 0; i < part.size(); ++i) CHECK_EQUAL(part[i], sum_at(me.size(), i));
      });
}

SHIM_TEST(strided_and_unaligned_memory_is_read_and_written) {
  on_ranks(3, [](Rank& me) {
    for (const std::size_t count : {3, 20'000}) {
      std::vector<std::int64_t> wide(count * 3, -1);
      TensorArgument strided = one("tensor", wide, {static_cast<std::int64_t>(count)});
      strided.single->strides[0] = 3;
      for (std::size_t i = 0; i < count; ++i) wide[3 * i] = value(me.rank(), i);
      me.run(make_all_reduce(me.seat(), strided, strided, sum));
      for (std::size_t i = 0; i < wide.size(); ++i) CHECK_EQUAL(wide[i], i % 3 == 0 ? sum_at(3, i / 3) : -1);

      std::vector<std::uint8_t> raw(count * sizeof(std::int64_t) + 1);
      TensorArgument odd{"tensor", view_of(wide, {static_cast<std::int64_t>(count)}), {}, false};
      odd.single->data = reinterpret_cast<std::byte*>(raw.data()) + 1;
      const auto mine = values(me.rank(), count);
      std::memcpy(raw.data() + 1, mine.data(), count * sizeof(std::int64_t));
      me.run(make_all_reduce(me.seat(), odd, odd, sum));
      for (std::size_t i = 0; i < count; ++i) {
        std::int64_t seen;
        std::memcpy(&seen, raw.data() + 1 + i * sizeof(seen), sizeof(seen));
        CHECK_EQUAL(seen, sum_at(3, i));
      }
    }
  });
}

SHIM_TEST(outputs_larger_than_the_caches) {
  on_ranks(2, [](Rank& me) {
    constexpr std::size_t count = 2'000'003;  // 16 MB for each rank
    auto mine = values(me.rank(), 2 * count);
    std::vector<std::int64_t> part(count, -1);
    me.run(make_reduce_scatter(me.seat(), one("output", part), one("input", mine), no_splits("input_splits"), sum));
    const std::size_t start = static_cast<std::size_t>(me.rank()) * count;
    for (std::size_t i = 0; i < count; ++i) CHECK_EQUAL(part[i], sum_at(2, start + i));
    me.run(make_all_to_all(me.seat(), one("output", mine), one("input", mine), no_splits("output_splits"),
                           no_splits("input_splits")));
    for (std::size_t i = 0; i < count; ++i) CHECK_EQUAL(mine[count + i], value(1, start + i));
    me.run(make_all_gather(me.seat(), one("output", mine), one("input", part), no_splits("output_splits")));
    for (std::size_t i = 0; i < 2 * count; ++i) CHECK_EQUAL(mine[i], sum_at(2, i));
    me.run(make_broadcast(me.seat(), one("tensor", mine), 1));
    for (std::size_t i = 0; i < 2 * count; ++i) CHECK_EQUAL(mine[i], sum_at(2, i));
    me.run(make_scatter(me.seat(), one("output", part), one("input", mine), no_splits("input_splits"), 1));
    for (std::size_t i = 0; i < count; ++i) CHECK_EQUAL(part[i], sum_at(2, start + i));
  });
}

SHIM_TEST(thousands_of_mixed_operations) {
  for (const int size : {2, 3, 4})
    on_ranks(size, [](Rank& me) {
      std::mt19937 random(42);  // the same choices on all ranks
      const auto n = static_cast<std::size_t>(me.size());
      for (int step = 0; step < 3000; ++step) {
        const std::size_t count = random() % 8 == 0 ? random() % 40'000 : random() % 12;
        const int root = static_cast<int>(random() % n);
        auto data = values(me.rank() + step, count);
        switch (random() % 5) {
          case 0:
            me.run(make_barrier(me.seat()));
            break;
          case 1:
            me.run(make_broadcast(me.seat(), one("tensor", data), root));
            CHECK(data == values(root + step, count));
            break;
          case 2: {
            me.run(make_all_reduce(me.seat(), one("output", data), one("input", data), {ReduceOp::max, 1.0}));
            CHECK(data == values(me.size() - 1 + step, count));
            break;
          }
          case 3: {
            std::vector<std::int64_t> all(count * n);
            me.run(make_all_gather(me.seat(), one("output", all), one("input", data), no_splits("output_splits")));
            if (count > 0) CHECK_EQUAL(all.back(), value(me.size() - 1 + step, count - 1));
            break;
          }
          default: {
            auto whole = values(me.rank() + step, count * n);
            me.run(make_all_to_all(me.seat(), one("output", whole), one("input", whole), no_splits("output_splits"),
                                   no_splits("input_splits")));
            if (count > 0) CHECK_EQUAL(whole[0], value(step, static_cast<std::size_t>(me.rank()) * count));
          }
        }
      }
    });
}

SHIM_TEST(ranks_fill_what_they_have_read) {
  for (const int size : {2, 3, 7})
    on_ranks(size, [](Rank& me) {
      const Group& group = me.group();
      const auto cell = [&](int rank, int peer, std::uint64_t step) {
        return group.ring_cell(rank, peer, step, SlotSize::large, cell_unit);
      };
      for (std::uint64_t step = 0; step < 3 * ring_slots; ++step) {
        const int last_reader = group.size() == 2 ? 1 - me.rank() : me.rank();
        CHECK(group.ring_slot(me.rank(), step, SlotSize::large) ==
              group.ring_slot(last_reader, step + ring_slots, SlotSize::large));
        for (int peer = 0; peer < group.size(); ++peer)
          CHECK(cell(me.rank(), peer, step) == cell(peer, me.rank(), step + ring_slots));
        std::set<const std::byte*> places;  // of all cells, and of what is made of them
        for (int rank = 0; rank < group.size(); ++rank) {
          places.insert(group.made_cell(rank, step, SlotSize::large, cell_unit));
          for (int peer = 0; peer < group.size(); ++peer)
            if (peer != rank) places.insert(cell(rank, peer, step));
        }
        CHECK(places.size() == static_cast<std::size_t>(group.size() * group.size()));
      }
    });
}

SHIM_TEST(a_broadcast_goes_in_quarters_where_every_rank_has_a_processor) {
  constexpr std::size_t kib = 1024;
  const auto steps_of = [](Rank& me, std::size_t bytes) {
    std::vector<std::uint8_t> data(bytes);
    const std::uint64_t before = me.group().steps;
    me.run(make_broadcast(me.seat(), one("tensor", data), 0));
    return me.group().steps - before;
  };
  for (const int size : {2, 7})
    on_ranks(size, [&](Rank& me) {
      const bool is_crowded = me.group().is_crowded();
      CHECK_EQUAL(me.group().thresholds().piece, 128 * kib);
      CHECK_EQUAL(steps_of(me, 128 * kib - 1), 1U);
      CHECK_EQUAL(steps_of(me, 128 * kib), is_crowded ? 1U : 4U);
      CHECK_EQUAL(steps_of(me, 128 * kib + 1), is_crowded ? 2U : 4U);
      CHECK_EQUAL(steps_of(me, 256 * kib), is_crowded ? 2U : 4U);
      CHECK_EQUAL(steps_of(me, 512 * kib), 4U);
    });
}
