// Ranks that have less processors than they are: when they do, and what a waiting one does about it.
#include "group/crowd.hpp"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "platform/processors.hpp"
#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

struct Lines : std::array<StatusLine, 4> {
  const std::vector<StatusLine*> all{&(*this)[0], &(*this)[1], &(*this)[2], &(*this)[3]};
};

const auto nobody = [](int) { return false; };
const auto everybody = [](int) { return true; };

void put(Lines& lines, std::vector<int> processors) {
  for (std::size_t rank = 0; rank < processors.size(); ++rank) lines[rank].processor = processors[rank] + 1;
}

cpu_set_t set_of(const Processors& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  return set;
}

// Runs `body` on a thread that may use `processors` alone.
template <class Body>
void bound_to(const Processors& processors, const Body& body) {
  std::exception_ptr error;
  std::thread([&] {
    try {
      const cpu_set_t set = set_of(processors);
      CHECK_EQUAL(::sched_setaffinity(0, sizeof(set), &set), 0);
      body();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

// What ranks that are bound to these agree on when they meet.
std::vector<bool> crowdedness_found_by(const std::vector<Processors>& by_rank) {
  static int number = 0;
  const std::string key = "crowd " + std::to_string(::getpid()) + " " + std::to_string(++number);
  std::vector<int> ranks(by_rank.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<char> found(by_rank.size(), 2);
  std::vector<std::thread> threads;
  for (const int rank : ranks)
    threads.emplace_back([&, rank, i = static_cast<std::size_t>(rank)] {
      bound_to(by_rank[i], [&] {
        const auto look = [&](Encounter&& encounter) {
          const SharedLayout layout(static_cast<int>(ranks.size()));
          found[i] = reinterpret_cast<const GroupHeader*>(encounter.segment.data() + layout.header())->is_crowded != 0;
        };
        meet({key, "g", ranks, rank, 10}, [] {}, look);
      });
    });
  for (std::thread& thread : threads) thread.join();
  return std::vector<bool>(found.begin(), found.end());
}

}  // namespace

SHIM_TEST(a_crowd_is_where_not_every_rank_can_have_a_processor_of_its_own) {
  CHECK(!are_crowded({{0}}));
  CHECK(!are_crowded({{0, 1}, {0, 1}}));
  CHECK(are_crowded({{0, 1}, {0, 1}, {0, 1}}));
  CHECK(!are_crowded({{0}, {1}, {2}, {3}}));      // bound by their launcher
  CHECK(are_crowded({{0}, {0}, {1, 2, 3}}));      // enough of them, and not for these
  CHECK(!are_crowded({{0, 1, 2}, {0, 1}, {0}}));  // who sits already has to move, twice
  CHECK(are_crowded({{0, 1, 2}, {0, 1}, {0}, {2}}));
  CHECK(are_crowded({{}, {1}}));
  CHECK_EQUAL(count_together({{0, 1}, {1, 2}, {7}}), 4u);
}

SHIM_TEST(processors_are_told_as_text) {
  CHECK(processors_in(text_of({0, 3, 1023})) == Processors({0, 3, 1023}));
  CHECK(processors_in("") == Processors());
  CHECK(processors_in("2,x") == Processors({2}));
  CHECK(processors_in("-1,2") == Processors());
  CHECK(processors_in("99999999999999") == Processors());
}

SHIM_TEST(ranks_that_meet_know_of_all_where_they_may_run) {
  const Processors usable = usable_processors();
  const Processors first = {usable.front()}, last = {usable.back()};
  const bool has_one = usable.size() == 1;
  for (const bool found : crowdedness_found_by({first, last})) CHECK_EQUAL(found, has_one);
  for (const bool found : crowdedness_found_by({usable, usable, first}))
    CHECK_EQUAL(found, are_crowded({usable, usable, first}));
  for (const bool found : crowdedness_found_by({first, first})) CHECK(found);
  for (const bool found : crowdedness_found_by({usable, last, last})) CHECK(found);
}

SHIM_TEST(only_awaited_ranks_of_the_same_processor_are_kept_from_running) {
  Lines lines{};
  put(lines, {5, 6, 5, 6});
  const Crowd crowd(lines.all, 0);
  CHECK(crowd.keeps_from_running(everybody));
  CHECK(crowd.keeps_from_running([](int rank) { return rank == 2; }));
  CHECK(!crowd.keeps_from_running([](int rank) { return rank != 2; }));
  CHECK(!crowd.keeps_from_running(nobody));
}

SHIM_TEST(a_wait_in_a_crowd_has_an_end_of_turns) {
  for (const auto& is_awaited : {std::function<bool(int)>(nobody), std::function<bool(int)>(everybody)}) {
    Lines lines{};
    Crowd crowd(lines.all, 0);
    CrowdTurns turns(crowd);
    put(lines, {::sched_getcpu(), ::sched_getcpu(), ::sched_getcpu(), ::sched_getcpu()});
    int taken = 0;
    while (taken < 1'000'000 && turns.take(is_awaited)) ++taken;
    CHECK(taken > 0);
    CHECK(taken < 1'000'000);
    CHECK(!turns.take(is_awaited));
  }
}

SHIM_TEST(yielding_in_vain_becomes_seldom_and_comes_back) {
  Lines lines{};
  Crowd crowd(lines.all, 0);
  const auto yields = [&crowd](int wanted) {
    CrowdTurns turns(crowd);
    for (int turn = 0; turn < wanted && turns.take(everybody);) ++turn;
    return crowd.worthwhile_yields();
  };
  put(lines, {::sched_getcpu(), ::sched_getcpu(), ::sched_getcpu(), ::sched_getcpu()});
  CHECK_EQUAL(yields(1), Crowd::most_yields);
  for (int wait = 0; wait < 5; ++wait) yields(1'000'000);
  CHECK_EQUAL(crowd.worthwhile_yields(), Crowd::least_yields);
  for (int wait = 0; wait < 50; ++wait) crowd.note_wait(false);
  CHECK_EQUAL(crowd.worthwhile_yields(), Crowd::most_yields);
}

SHIM_TEST(the_last_rank_of_the_fullest_processor_moves) {
  const Processors usable = usable_processors();
  const int here = usable.front(), there = usable.back();
  const int other = here == there ? -1 : there;
  const auto better_for = [](int rank, const std::vector<int>& processors) {
    Lines lines{};
    put(lines, processors);
    return Crowd(lines.all, rank).better_processor();
  };
  bound_to({here, there}, [&] {
    CHECK_EQUAL(better_for(3, {here, there, here, here}), other);
    CHECK_EQUAL(better_for(2, {here, there, here, here}), -1);
    CHECK_EQUAL(better_for(2, {here, here, here, there}), other);
    CHECK_EQUAL(better_for(3, {here, there, there, here}), -1);
    CHECK_EQUAL(better_for(2, {here, here, here, -1}), other);  // the fourth has not told
  });
  bound_to({here}, [&] { CHECK_EQUAL(better_for(3, {here, there, here, here}), -1); });
}

SHIM_TEST(who_has_moved_may_run_where_it_might_before) {
  const Processors usable = usable_processors();
  for (const Processors& processors : {usable, Processors{usable.front()}, Processors{usable.back()}})
    bound_to(processors, [&] {
      const int here = ::sched_getcpu();
      Lines lines{};
      put(lines, {here, here, here, here});
      Crowd crowd(lines.all, 3);
      crowd.tell_processor();
      crowd.spread_out(Crowd::Clock::now());
      CHECK(usable_processors() == processors);
      const int told = lines[3].processor - 1;
      CHECK(std::find(processors.begin(), processors.end(), told) != processors.end());
    });
}

SHIM_TEST(a_rank_that_waits_long_sleeps) {
  constexpr int size = 2;
  const auto segment = std::make_shared<Segment>(memory_for(size, usual_thresholds(), true));
  const SharedLayout layout(size);
  const auto& bell = *reinterpret_cast<const Doorbell*>(segment->data() + layout.doorbell(1));
  Rank first(0, size, 60, segment), second(1, size, 60, segment);
  std::thread waiting([&] { second.run(make_barrier(second.seat())); });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (bell.sleepers.load() == 0 && std::chrono::steady_clock::now() < until) ::sched_yield();
  const bool slept = bell.sleepers.load() != 0;
  first.run(make_barrier(first.seat()));
  waiting.join();
  CHECK(slept);
}

SHIM_TEST(ranks_on_one_processor_part_where_there_is_another) {
  Processors two = usable_processors();
  if (two.size() < 2) return;
  two.resize(2);
  std::atomic<bool> have_parted{false};
  std::array<std::atomic<int>, 2> places{};
  on_ranks(2, [&](Rank& me) {
    const cpu_set_t one = set_of({two[0]});
    const cpu_set_t both = set_of(two);
    CHECK_EQUAL(::sched_setaffinity(0, sizeof(one), &one), 0);
    me.run(make_barrier(me.seat()));
    CHECK_EQUAL(::sched_setaffinity(0, sizeof(both), &both), 0);
    for (int i = 0; i < 2000; ++i) {
      places[static_cast<std::size_t>(me.rank())] = ::sched_getcpu();
      me.run(make_barrier(me.seat()));
      if (places[0] != places[1]) have_parted = true;
    }
  });
  CHECK(have_parted);
}
