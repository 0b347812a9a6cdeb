// What memory a group has: little at first, more when it is first needed; and what happens where there is none.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/floats.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t page_bytes = 4 * kib;
constexpr std::size_t large = 100'000;  // elements
constexpr std::int64_t tag = 5;

// As ranks that have met have it: the file is closed where it is not needed.
struct Memory {
  explicit Memory(int size)
      : segment(std::make_shared<Segment>(memory_for(size, usual_thresholds(), is_crowded_with(size)))),
        file(::dup(segment->file())) {
    segment->close_file_if_spare();
  }
  std::size_t bytes() const {
    struct stat status{};
    CHECK_EQUAL(::fstat(file.get(), &status), 0);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  }

  std::shared_ptr<Segment> segment;
  Descriptor file;
};

// While there is one, that part of the memory cannot be reserved, and whoever touches it ends the process.
class Unavailable {
 public:
  // Of whole pages in [start, start + bytes).
  Unavailable(const Memory& memory, std::size_t start, std::size_t bytes) {
    const std::size_t first = (start + page_bytes - 1) / page_bytes * page_bytes;
    data_ = memory.segment->data() + first;
    bytes_ = (start + bytes) / page_bytes * page_bytes - first;
    CHECK_EQUAL(::mprotect(data_, bytes_, PROT_NONE), 0);
  }
  ~Unavailable() { ::mprotect(data_, bytes_, PROT_READ | PROT_WRITE); }

 private:
  std::byte* data_;
  std::size_t bytes_;
};

std::vector<std::int64_t> values(int rank, std::size_t count) {
  std::vector<std::int64_t> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<std::int64_t>(i % 1000) + 1000 * (rank + 1);
  return data;
}

void check_sum(Rank& me, std::size_t count) {
  std::vector<std::int64_t> data = values(me.rank(), count);
  me.run(summing(me, data));
  std::vector<std::int64_t> expected(count, 0);
  for (int rank = 0; rank < me.size(); ++rank) {
    const std::vector<std::int64_t> theirs = values(rank, count);
    for (std::size_t i = 0; i < count; ++i) expected[i] += theirs[i];
  }
  CHECK(data == expected);
}

// What rank `from` has for rank `to`, where they have this many elements for each other.
using CountOf = std::function<std::size_t(int from, int to)>;

void exchange(Rank& me, const CountOf& count) {
  std::vector<std::vector<std::int64_t>> inputs, outputs;
  for (int peer = 0; peer < me.size(); ++peer) {
    inputs.push_back(values(me.size() * me.rank() + peer, count(me.rank(), peer)));
    outputs.emplace_back(count(peer, me.rank()), -1);
  }
  me.run(make_all_to_all(me.seat(), list("output", outputs), list("input", inputs), no_splits("output_splits"),
                         no_splits("input_splits")));
  for (int peer = 0; peer < me.size(); ++peer)
    CHECK(outputs[static_cast<std::size_t>(peer)] == values(me.size() * peer + me.rank(), count(peer, me.rank())));
}

void gather(Rank& me, const CountOf& count) {
  std::vector<std::int64_t> input = values(me.rank(), count(me.rank(), 0));
  std::vector<std::vector<std::int64_t>> outputs;
  for (int peer = 0; peer < me.size(); ++peer) outputs.emplace_back(count(peer, 0), -1);
  me.run(make_all_gather(me.seat(), list("output", outputs), one("input", input), no_splits("output_splits")));
  for (int peer = 0; peer < me.size(); ++peer)
    CHECK(outputs[static_cast<std::size_t>(peer)] == values(peer, count(peer, 0)));
}

template <class Call>
std::optional<Failure> failure_of(const Call& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure;
  }
  return std::nullopt;
}

void transfer(Rank& me, bool is_send, std::vector<std::int64_t>& data, std::int64_t with_tag = tag) {
  TransferTask(me.progress(), view_of(data), is_send, 1 - me.rank(), with_tag).wait(-1);
}

}  // namespace

SHIM_TEST(a_group_of_8_that_carries_only_small_collectives_costs_at_most_256_kb) {
  const Memory memory(8);
  on_ranks_with(memory.segment, 8, [](Rank& me) {
    for (int turn = 0; turn < 20; ++turn) {
      for (const std::size_t count : {1, 5, 6, 100, 512}) check_sum(me, count);
      exchange(me, [](int, int) { return 1; });
      exchange(me, [](int from, int to) { return static_cast<std::size_t>((2 * from + 3 * to) % 64); });
      gather(me, [](int, int) { return 512; });
      gather(me, [](int from, int) { return static_cast<std::size_t>(1 + from * 70); });
      std::vector<std::int64_t> data = values(turn % 8, 300);
      me.run(make_broadcast(me.seat(), one("tensor", data), turn % 8));
      me.run(make_barrier(me.seat(), ""));
    }
  });
  CHECK(memory.bytes() > 0);
  CHECK(memory.bytes() <= 256 * kib);
}

SHIM_TEST(a_group_reserves_what_it_first_needs_and_keeps_it) {
  const Memory memory(2);
  const std::size_t first = memory.bytes();
  std::size_t with_rings = 0;
  on_ranks_with(memory.segment, 2, [&](Rank& me) {
    check_sum(me, large);
    me.run(make_barrier(me.seat(), ""));
    if (me.rank() == 0) with_rings = memory.bytes();
    me.run(make_barrier(me.seat(), ""));
    std::vector<std::int64_t> data(10);
    transfer(me, me.rank() == 0, data);
    check_sum(me, large);
  });
  CHECK_EQUAL(with_rings, first + 2 * ring_slots * ring_slot_bytes);
  const std::size_t rooms = memory.bytes() - with_rings;
  CHECK(rooms >= SharedLayout(2).channel_rooms_bytes());
  CHECK(rooms <= SharedLayout(2).channel_rooms_bytes() + 2 * page_bytes);
}

SHIM_TEST(parts_of_all_sizes_find_their_slots_before_and_after_there_are_large_ones) {
  for (const int size : {2, 3, 4, 7})
    on_ranks(size, [](Rank& me) {
      const CountOf mixed = [](int from,
                               int to) {  // what concerns rank 0 is small, and a rank may know of nothing else
        return static_cast<std::size_t>(from == 0 || to == 0 ? 2 + from + to : 100 + 30'000 * from * to);
      };
      const CountOf small = [](int from, int to) { return static_cast<std::size_t>(1 + (from + 2 * to) % 5); };
      for (int turn = 0; turn < 10; ++turn) {
        exchange(me, small);
        exchange(me, [](int, int) { return 8; });
        exchange(me, mixed);
        gather(me, mixed);
        gather(me, [](int from, int) { return static_cast<std::size_t>(from == 0 ? 3 : from == 1 ? 400 : 70'000); });
        gather(me, small);
        check_sum(me, 10);
      }
    });
}

SHIM_TEST(no_memory_for_large_slots_is_told_on_every_rank_and_the_group_goes_on) {
  for (const int size : {1, 2, 3}) {
    const Memory memory(size);
    const int without = size - 1;
    auto unavailable =
        std::make_optional<Unavailable>(memory, SharedLayout(size).ring(without), ring_slots * ring_slot_bytes);
    on_ranks_with(memory.segment, size, [&](Rank& me) {
      for (int turn = 0; turn < 3; ++turn) {
        std::vector<std::int64_t> data = values(me.rank(), large);
        const auto failure = failure_of([&] { me.run(summing(me, data)); });
        CHECK(failure.has_value());
        CHECK(failure->kind == FailureKind::memory);
        CHECK(std::string(failure->what()).find("could not be reserved on rank " + std::to_string(without)) !=
              std::string::npos);
        CHECK(data == values(me.rank(), large));
        check_sum(me, 1);
        check_sum(me, 100);
        gather(me, [](int, int) { return 20; });
      }
      if (me.rank() == without) unavailable.reset();
      me.run(make_barrier(me.seat(), ""));
      for (int turn = 0; turn < 5; ++turn) check_sum(me, large);
    });
  }
}

SHIM_TEST(no_memory_for_a_message_is_told_on_both_ranks_and_the_group_goes_on) {
  const Memory memory(2);
  const SharedLayout layout(2);
  auto unavailable = std::make_optional<Unavailable>(memory, layout.channel_rooms(0, 1), layout.channel_rooms_bytes());
  on_ranks_with(memory.segment, 2, [&](Rank& me) {
    const bool is_sender = me.rank() == 0;
    for (const std::size_t count : {std::size_t{4}, large}) {
      const auto check_told = [&](bool is_send) {
        std::vector<std::int64_t> data = values(me.rank(), count);
        const auto failure = failure_of([&] { transfer(me, is_send, data); });
        CHECK(failure.has_value());
        CHECK(failure->kind == FailureKind::memory);
        CHECK(std::string(failure->what()).starts_with("there is not enough memory on rank 0 for the buffers"));
        CHECK(data == values(me.rank(), count));
      };
      std::vector<std::int64_t> few = values(me.rank(), 3);
      check_told(is_sender);
      transfer(me, is_sender, few);
      CHECK(few == values(0, 3));
      if (is_sender) check_told(true);  // put aside on the other rank, which asks for the next message first
      transfer(me, is_sender, few, tag + 1);
      if (!is_sender) check_told(false);
      std::vector<std::int64_t> back = values(me.rank(), count);
      transfer(me, !is_sender, back);
      CHECK(back == values(1, count));
    }
    if (is_sender) unavailable.reset();
    std::vector<std::int64_t> data = values(me.rank(), large);
    transfer(me, is_sender, data);
    CHECK(data == values(0, large));
  });
}

SHIM_TEST(no_memory_to_say_what_is_lent_is_no_error) {
  const Memory memory(2);
  const Unavailable unavailable(memory, SharedLayout(2).lent(1, LentFor::operations),
                                lent_allocations * sizeof(LentAllocation));
  on_ranks_with(memory.segment, 2, [](Rank& me) {
    Floats input(large, true, me.rank());
    Floats output(2 * large, true, 100);
    me.run(make_all_gather(me.seat(), output.as("output"), input.as("input"), no_splits("output_splits")));
    CHECK(!was_direct(me));
    const std::vector<float> mine = input.values();
    const std::vector<float> all = output.values();
    CHECK(std::equal(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(large) * me.rank()));
  });
}
