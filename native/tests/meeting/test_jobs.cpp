// Ranks of several jobs that have one key: who meets whom.
#include <chrono>
#include <thread>

#include "tests/meetings.hpp"

using namespace shim;
using namespace shim::tests;

SHIM_TEST(ranks_that_are_proven_to_be_of_two_jobs_meet_their_own) {
  for (const bool is_rank_0_the_parent : {false, true}) {
    const std::string key = new_key();
    std::vector<Meeting> meetings;
    for (const std::string job : {"1", "2", "3"}) {
      const Origin first =
          is_rank_0_the_parent ? Origin{job + ".1", "9.1", false, true} : Origin{job + "0.1", job + ".1", true};
      meetings.push_back({key, "g", {0, 1, 2}, 0, 20, std::nullopt, first});
      for (const int rank : {1, 2})
        meetings.push_back(
            {key, "g", {0, 1, 2}, rank, 20, std::nullopt, {job + std::to_string(rank) + ".1", job + ".1", true}});
    }
    for (const Met& met : all_meet(meetings)) CHECK_EQUAL(met.failure, std::string());
  }
}

SHIM_TEST(a_rank_of_another_job_is_not_let_in) {
  const std::string key = new_key();
  const auto met = all_meet({{key, "g", {0, 1}, 0, 2, std::nullopt, {"11.1", "1.1", true}},
                             {key, "g", {0, 1}, 1, 2, std::nullopt, {"22.1", "2.1", true}}});
  CHECK(tells(met[0], "process 22, which process 2 started, came as rank 1 of another job"));
  CHECK(tells(met[1], "process 11, which process 1 started, is rank 0 of another job there"));
  for (const Met& one : met) CHECK(one.kind == FailureKind::timeout);
}

SHIM_TEST(ranks_of_two_jobs_that_wait_in_vain_for_their_own_end_it) {
  const std::string key = new_key();
  for (const Met& met : all_meet({{key, "g", {0, 1}, 0, 6, std::nullopt, {"11.1", "1.1", true}},
                                  {key, "g", {0, 1}, 1, 6, std::nullopt, {"22.1", "2.1", true}}})) {
    CHECK(met.kind == FailureKind::state);
    CHECK(tells(met, "process 11, which process 1 started, is rank 0 of one job, process 22, which process 2 started"));
    CHECK(tells(met, "is rank 1 of another one, and each waits in vain for its own"));
  }
}

SHIM_TEST(helpers_of_one_job_meet_at_once_and_those_with_siblings_a_little_later) {
  for (const bool have_siblings : {false, true}) {
    const std::string key = new_key();
    const auto began = std::chrono::steady_clock::now();
    for (const Met& met :
         all_meet({{key, "g", {0, 1}, 0, 4, std::nullopt, {"11.1", "1.1", have_siblings, false, "run 1"}},
                   {key, "g", {0, 1}, 1, 4, std::nullopt, {"22.1", "2.1", have_siblings, false, "run 1"}}}))
      CHECK_EQUAL(met.failure, std::string());
    CHECK((std::chrono::steady_clock::now() - began < std::chrono::milliseconds(1900)) == !have_siblings);
  }
}

SHIM_TEST(helpers_of_two_jobs_keep_apart) {
  const std::string key = new_key();
  std::vector<Meeting> meetings;
  for (const std::string job : {"1", "2"})
    for (const int rank : {0, 1, 2}) {
      const std::string parent = job + std::to_string(rank);
      meetings.push_back(
          {key, "g", {0, 1, 2}, rank, 20, std::nullopt, {"9" + parent, parent, false, false, "run " + job}});
    }
  for (const Met& met : all_meet(meetings)) CHECK_EQUAL(met.failure, std::string());
}

SHIM_TEST(a_helper_meets_a_rank_of_no_outer_job) {
  const std::string key = new_key();
  for (const Met& met : all_meet({{key, "g", {0, 1}, 0, 4, std::nullopt, {"11.1", "1.1"}},
                                  {key, "g", {0, 1}, 1, 4, std::nullopt, {"22.1", "2.1", false, false, "run 1"}}}))
    CHECK_EQUAL(met.failure, std::string());
}

SHIM_TEST(ranks_without_proof_meet_those_with_some) {
  for (const int proven : {0, 1}) {
    const std::string key = new_key();
    std::vector<Meeting> meetings;
    for (const int rank : {0, 1})
      meetings.push_back(
          {key, "g", {0, 1}, rank, 2, std::nullopt, {std::to_string(rank) + ".1", "7.1", rank == proven}});
    meetings[0].origin.parent = "6.1";
    for (const Met& met : all_meet(meetings)) CHECK_EQUAL(met.failure, std::string());
  }
}

SHIM_TEST(children_that_do_not_come_prove_nothing) {
  const Origin loads_data{"1.1", "9.1", false, true};
  const std::string key = new_key();
  for (const Met& met : all_meet({{key, "g", {0, 1}, 0, 2, std::nullopt, loads_data},
                                  {key, "g", {0, 1}, 1, 2, std::nullopt, {"2.1", "8.1"}}}))
    CHECK_EQUAL(met.failure, std::string());
  for (const Origin& other : {Origin{"2.1", "8.1"}, Origin{"2.1", "8.1", false, true}})
    for (const Met& met :
         all_meet({{key, "g", {0, 1}, 0, 2, std::nullopt, loads_data}, {key, "g", {0, 1}, 0, 2, std::nullopt, other}}))
      CHECK(met.kind == FailureKind::state && tells(met, "two processes are rank 0"));
}

SHIM_TEST(children_that_may_still_come_keep_another_jobs_rank_out) {
  const std::string key = new_key();
  for (const Met& met : all_meet({{key, "g", {0, 1}, 0, 2, std::nullopt, {"1.1", "9.1", false, true}},
                                  {key, "g", {0, 1}, 1, 2, std::nullopt, {"22.1", "2.1", true}}}))
    CHECK(met.kind == FailureKind::timeout && tells(met, "of another job"));
}

SHIM_TEST(a_child_that_comes_is_a_proof) {
  const std::string key = new_key();
  // Rank 0 has the longest timeout, so that the others end first, whatever the machine is busy with.
  const auto met = all_meet({{key, "g", {0, 1, 2}, 0, 8, std::nullopt, {"1.1", "9.1"}},
                             {key, "g", {0, 1, 2}, 1, 2, std::nullopt, {"11.1", "1.1", true}},
                             {key, "g", {0, 1, 2}, 2, 2, std::nullopt, {"22.1", "2.1", true}}});
  CHECK(tells(met[0], "process 22, which process 2 started, came as rank 2 of another job"));
  CHECK(tells(met[2], "process 1, which process 9 started, is rank 0 of another job there"));
  for (const Met& one : met) CHECK(one.kind == FailureKind::timeout);
}

SHIM_TEST(a_child_that_comes_late_turns_another_jobs_rank_away) {
  for (const std::size_t children : {1, 2}) {  // the second one has the rank of the other job's
    const std::string key = new_key();
    std::vector<Met> met(2 + children);
    std::vector<std::thread> threads;
    const auto come = [&](std::size_t i, int rank, const Origin& origin, std::chrono::milliseconds after) {
      threads.emplace_back([&met, &key, i, rank, origin, after] {
        std::this_thread::sleep_for(after);
        met[i] = try_to_meet({key, "g", {0, 1, 2}, rank, 3, std::nullopt, origin});
      });
    };
    using namespace std::chrono_literals;
    come(0, 0, {"1.1", "9.1"}, 0ms);
    come(1, 2, {"22.1", "2.1", true}, 0ms);  // goes to the shared address after half its timeout
    for (std::size_t child = 1; child <= children; ++child)
      come(1 + child, static_cast<int>(children + 1 - child), {"1" + std::to_string(child) + ".1", "1.1", true},
           2200ms);
    for (std::thread& thread : threads) thread.join();
    CHECK(met[1].kind == FailureKind::timeout);
    CHECK(tells(met[1], "process 1, which process 9 started, is rank 0 of another job there"));
    if (children == 1) CHECK(tells(met[0], "process 22, which process 2 started, came as rank 2 of another job"));
    if (children == 2)
      for (const std::size_t ours : {0, 2, 3}) CHECK_EQUAL(met[ours].failure, std::string());
  }
}

SHIM_TEST(two_jobs_whose_children_start_slowly_keep_apart) {
  const std::string key = new_key();
  std::vector<Met> met(4);
  std::vector<std::thread> threads;
  for (const std::size_t job : {0, 1}) {
    const std::string process = std::to_string(job + 1) + ".1", child = "1" + process;
    threads.emplace_back([&, job, process] {
      met[2 * job] = try_to_meet({key, "g", {0, 1}, 0, 40, std::nullopt, {process, "9.1", false, true}});
    });
    threads.emplace_back([&, job, process, child] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5500));  // when rank 0 has begun to look for others, too
      met[2 * job + 1] = try_to_meet({key, "g", {0, 1}, 1, 40, std::nullopt, {child, process, true}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Met& one : met) CHECK_EQUAL(one.failure, std::string());
}
