// Circles of waits, and what is noted of a wait.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "reports/waits.hpp"
#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

using namespace std::chrono_literals;
using Ranks = std::vector<int>;

Ranks circle_in(const std::map<int, Ranks>& awaited, int start) {
  return circle_from(start, [&awaited](int one) {
    const auto found = awaited.find(one);
    return found == awaited.end() ? Ranks() : found->second;
  });
}

class Program final : public WaitHooks {
 public:
  void about_to_block() override {}
  void check_interrupted() override {}
  Held held() const override { return Held::program; }
};

void await_note(const Group& group, int rank) {
  while (group.note(rank).waits_since.load() == 0) std::this_thread::yield();
}

}  // namespace

SHIM_TEST(a_circle_is_found_from_whoever_reaches_it) {
  CHECK(circle_in({{0, {1}}, {1, {0}}}, 0) == Ranks({0, 1}));
  CHECK(circle_in({{0, {1}}, {1, {2}}, {2, {3}}, {3, {1}}}, 0) == Ranks({1, 2, 3}));
  CHECK(circle_in({{0, {1, 2}}, {1, {3}}, {2, {3}}}, 0).empty());
  CHECK(circle_in({{1, {2}}, {2, {1}}}, 0).empty());
}

SHIM_TEST(the_shortest_way_round_is_told) { CHECK(circle_in({{0, {1, 2}}, {1, {2}}, {2, {0}}}, 0) == Ranks({0, 2})); }

SHIM_TEST(a_circle_is_told_from_its_lowest_rank) {
  const std::string text = told_circle({{4, "in group 'a'", Held::program}, {1, "to make group 'b'", Held::program}});
  CHECK_EQUAL(
      text, "rank 1 waits to make group 'b' for rank 4, which waits in group 'a' for rank 1: they wait for each other");
  CHECK(told_circle({{0, "here", Held::program}, {1, "there", Held::thread}}).find(", unless another thread") !=
        std::string::npos);
}

SHIM_TEST(a_note_says_whom_its_rank_awaits) {
  on_ranks(3, [](Rank& me) {
    Program program;
    const WaitHooksScope scope(program);
    if (me.rank() == 1) {
      await_note(me.group(), 0);
      CHECK(awaited_by(me.group(), 0) == Ranks({1, 2}));
      CHECK(me.group().note(0).held.load() == Held::program);
      CHECK_EQUAL(noted_where(me.group(), 0), "in group 'test'");
      CHECK(awaited_by(me.group(), 1).empty());
    }
    if (me.rank() == 2) await_note(me.group(), 0), std::this_thread::sleep_for(200ms);
    me.run(make_barrier(me.seat()));
  });
}

SHIM_TEST(a_wait_holds_nothing_while_something_is_started) {
  const Program program;
  CHECK(held_by(program) == Held::program);
  ++started_operations;
  CHECK(held_by(program) == Held::nothing);
  --started_operations;
}

SHIM_TEST(a_forked_child_begins_without_started_operations) {
  ++started_operations;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(held_by(Program()) == Held::program ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK_EQUAL(status, 0);
  CHECK_EQUAL(started_operations.load(), 1);
  --started_operations;
}
