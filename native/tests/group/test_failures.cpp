// What the ranks of a group are told when one of them fails, and whom they are told to blame.
#include <unistd.h>

#include <barrier>
#include <chrono>
#include <new>
#include <string>
#include <thread>

#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

Failure failure_of(Rank& me, std::unique_ptr<Operation> operation) {
  try {
    me.run(std::move(operation));
  } catch (const Failure& failure) {
    return failure;
  }
  throw std::runtime_error("no failure on rank " + std::to_string(me.rank()));
}

Failure failure_of_sum(Rank& me) {
  std::vector<std::int64_t> data = {1};
  return failure_of(me, summing(me, data));
}

void check_lost(const Failure& failure, int rank, const std::string& how) {
  CHECK(failure.kind == FailureKind::peer_lost);
  CHECK_EQUAL(failure.ranks.at(0), rank);
  const std::string text = failure.what();
  CHECK_EQUAL(text.substr(0, text.find('\n')).find("rank " + std::to_string(rank) + how), std::size_t{0});
}

// What is said of a rank of which nobody knows how it died. Ranks are threads of this process.
std::string process_died() { return "'s process (pid " + std::to_string(::getpid()) + ") died"; }

// Runs the ranks with a barrier of their own, for which none that failed is waited.
template <class Body>
void in_steps(int size, const Body& body) {
  std::barrier<> all(size);
  on_ranks(size, [&](Rank& me) {
    try {
      body(me, all);
    } catch (...) {
      all.arrive_and_drop();
      throw;
    }
  });
}

}  // namespace

SHIM_TEST(who_died_is_blamed_through_those_that_noticed) {
  in_steps(3, [](Rank& me, std::barrier<>& all) {
    if (me.rank() == 0) {
      me.group().mark_lost(1);
      try {
        me.group().check_present(1);
      } catch (const Failure& failure) {
        check_lost(failure, 1, process_died());
      }
    }
    all.arrive_and_wait();
    if (me.rank() == 2) check_lost(failure_of_sum(me), 1, " was lost, as rank 0 reports");
    all.arrive_and_wait();
  });
}

SHIM_TEST(the_first_failure_of_a_rank_is_the_one_that_others_hear_of) {
  in_steps(3, [](Rank& me, std::barrier<>& all) {
    if (me.rank() == 0) {
      me.group().record(Failure(FailureKind::peer_lost, "gone", {1}));
      me.group().record(Failure(FailureKind::engine, "a message was given up"));
      me.group().record(Failure(FailureKind::peer_lost, "gone", {2}));
      CHECK(std::string(failure_of_sum(me).what()).ends_with(" ms ago, as was said then: gone"));
    }
    all.arrive_and_wait();
    if (me.rank() == 2) check_lost(failure_of_sum(me), 1, " was lost, as rank 0 reports");
    all.arrive_and_wait();
  });
}

SHIM_TEST(whoever_left_because_of_a_death_is_not_blamed_for_it) {
  in_steps(4, [](Rank& me, std::barrier<>& all) {
    if (me.rank() == 0) me.progress().stop();
    if (me.rank() == 1) me.group().record(Failure(FailureKind::peer_lost, "gone", {2}));
    all.arrive_and_wait();
    if (me.rank() == 3) {
      me.group().mark_lost(2);
      check_lost(failure_of_sum(me), 2, process_died());
    }
    all.arrive_and_wait();
  });
}

SHIM_TEST(of_two_deaths_the_first_is_named) {
  in_steps(3, [](Rank& me, std::barrier<>& all) {
    if (me.rank() == 2) {
      me.group().mark_lost(1);
      me.group().mark_lost(0);
      check_lost(failure_of_sum(me), 1, process_died());
    }
    all.arrive_and_wait();
  });
}

SHIM_TEST(the_cause_is_followed_from_rank_to_rank) {
  const std::string how = " gave the group up (the disk is full) at operation 1 of the group";
  in_steps(4, [&](Rank& me, std::barrier<>& all) {
    if (me.rank() == 2) me.group().record(Failure(FailureKind::engine, "the disk is full\nAnd so on."));
    all.arrive_and_wait();
    if (me.rank() == 1) check_lost(failure_of_sum(me), 2, how);
    all.arrive_and_wait();
    if (me.rank() == 0) me.group().record(Failure(FailureKind::peer_lost, "gone", {1}));
    all.arrive_and_wait();
    if (me.rank() == 3) check_lost(failure_of_sum(me), 2, how + ", as rank 0 reports");
    all.arrive_and_wait();
  });
}

SHIM_TEST(ranks_that_blame_each_other_are_no_endless_chain) {
  in_steps(3, [](Rank& me, std::barrier<>& all) {
    if (me.rank() < 2) me.group().record(Failure(FailureKind::peer_lost, "gone", {1 - me.rank()}));
    all.arrive_and_wait();
    if (me.rank() == 2) CHECK(failure_of_sum(me).kind == FailureKind::peer_lost);
    all.arrive_and_wait();
  });
}

SHIM_TEST(a_later_call_says_how_long_ago_the_group_was_lost) {
  on_ranks(2, [](Rank& me) {
    if (me.rank() == 1) return;
    me.group().mark_lost(1);
    const Failure first = failure_of_sum(me);
    check_lost(first, 1, process_died());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const Failure later = failure_of_sum(me);
    CHECK(later.kind == FailureKind::peer_lost);
    CHECK_EQUAL(later.ranks.at(0), 1);
    const std::string text = later.what();
    const std::string begin = "the group was given up ";
    CHECK_EQUAL(text.find(begin), std::size_t{0});
    CHECK(std::stoi(text.substr(begin.size())) >= 20);
    CHECK(text.ends_with(std::string(" ms ago, as was said then: ") + first.what()));
  });
}

SHIM_TEST(a_rank_that_was_stopped_beyond_the_timeout_looks_once_more) {
  struct Sleeper final : WaitHooks {
    void about_to_block() override {}
    void check_interrupted() override { sleeps = true; }
    bool sleeps = false;  // no longer polls
  };
  on_ranks(
      2,
      [](Rank& me) {
        Sleeper sleeper;
        const WaitHooksScope scope(sleeper);
        bool was_stopped = false;
        me.group().wait_for(1 - me.rank(), [&](int rank) {
          if (rank == me.rank() || was_stopped) return true;
          was_stopped = sleeper.sleeps;
          if (was_stopped) std::this_thread::sleep_for(std::chrono::milliseconds(300));
          return false;  // what came meanwhile is seen the next time
        });
        CHECK(me.group().is_usable());
      },
      0.1);
}
