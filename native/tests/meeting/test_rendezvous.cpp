// Ranks that meet over the socket: as processes would, but as threads.
#include "meeting/rendezvous.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "group/shared_layout.hpp"
#include "meeting/rendezvous_messages.hpp"
#include "platform/failure.hpp"
#include "platform/socket_messages.hpp"
#include "tests/meetings.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

void wait_for_host(const std::string& key) {
  while (!connect_to(address_of(key))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

SHIM_TEST(all_ranks_get_the_same_memory_and_the_others_pidfds) {
  for (const int size : {1, 2, 3, 5}) {
    const std::string key = new_key();
    std::vector<int> ranks;
    for (int rank = 0; rank < size; ++rank) ranks.push_back(rank);
    for (int round = 0; round < 3; ++round) {  // a key may be used again
      std::vector<Meeting> meetings;
      for (int rank = 0; rank < size; ++rank) meetings.push_back({key, "g", ranks, rank, 10});
      for (const Met& met : all_meet(meetings)) {
        CHECK_EQUAL(met.failure, std::string());
        CHECK_EQUAL(met.bytes, SharedLayout(size).total_bytes());
        CHECK_EQUAL(met.pidfds, static_cast<std::size_t>(size - 1));
      }
    }
  }
}

SHIM_TEST(a_rank_that_does_not_come_is_named_to_all) {
  const std::string key = new_key();
  for (const Met& met : all_meet({{key, "g", {0, 1, 2}, 0, 0.3}, {key, "g", {0, 1, 2}, 2, 0.3}})) {
    CHECK(met.kind == FailureKind::timeout);
    CHECK(tells(met, "had not come: 1"));
    CHECK_EQUAL(met.ranks.at(0), 1);
  }
}

SHIM_TEST(a_rank_that_cannot_join_ends_it_for_all) {
  for (const std::size_t unable : {0, 1, 2}) {
    const std::string key = new_key();
    std::vector<Met> met(3);
    std::vector<std::thread> threads;
    const auto begin = std::chrono::steady_clock::now();
    for (int rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, i = static_cast<std::size_t>(rank)] {
        met[i] = try_to_meet({key, "g", {0, 1, 2}, static_cast<int>(i), 20}, [&] {
          if (i == unable) throw Failure(FailureKind::engine, "out of ink");
        });
      });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t rank = 0; rank < 3; ++rank) {
      CHECK(met[rank].kind == FailureKind::engine);
      CHECK(tells(met[rank], "out of ink"));
      CHECK_EQUAL(tells(met[rank], "rank " + std::to_string(unable) + " could not join"), rank != unable);
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  }
}

SHIM_TEST(rank_zero_may_be_missing) {
  const Met met = try_to_meet({new_key(), "g", {0, 1}, 1, 0.2});
  CHECK(met.kind == FailureKind::timeout);
  CHECK(tells(met, "rank 0 had not come"));
}

SHIM_TEST(ranks_that_differ_about_the_group_are_told) {
  const std::string key = new_key();
  for (const Met& met : all_meet({{key, "g", {0, 1}, 0, 5}, {key, "g", {0, 1, 2}, 1, 5}})) {
    CHECK(met.kind == FailureKind::mismatch);
    CHECK(tells(met, "[0, 1]") && tells(met, "[0, 1, 2]"));
  }
}

SHIM_TEST(two_processes_of_one_rank_are_told) {
  const std::string key = new_key();
  const auto met = all_meet({{key, "g", {0, 1, 2}, 0, 5}, {key, "g", {0, 1, 2}, 1, 5}, {key, "g", {0, 1, 2}, 1, 5}});
  for (const Met& one : met) {
    CHECK(one.kind == FailureKind::mismatch);
    CHECK(tells(one, "two processes came as rank 1"));
  }
}

SHIM_TEST(two_processes_of_rank_zero_are_told) {
  const std::string key = new_key();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Met> met(3);
  std::atomic<bool> has_come = false;
  std::thread host([&] { met[0] = try_to_meet({key, "g", {0, 1, 2}, 0, 30}); });
  wait_for_host(key);
  std::thread guest([&] {  // which finds the host at its first look, so that it waits for the host's answer only
    met[2] = try_to_meet({key, "g", {0, 1, 2}, 2, 30}, [] {}, [&] { has_come = true; });
  });
  while (!has_come) std::this_thread::yield();
  met[1] = try_to_meet({key, "g", {0, 1, 2}, 0, 30});
  host.join();
  guest.join();
  for (const Met& one : met) {
    CHECK(one.kind == FailureKind::state);
    CHECK(tells(one, "two processes are rank 0"));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(15));
}

SHIM_TEST(another_jobs_rank_zero_ends_itself_alone) {
  const std::string key = new_key();
  const auto begin = std::chrono::steady_clock::now();
  Met host;
  std::thread first([&] { host = try_to_meet({key, "g", {0, 1}, 0, 30}); });
  wait_for_host(key);
  const Met other = try_to_meet({key, "g", {0, 1, 2}, 0, 30});
  const Met guest = try_to_meet({key, "g", {0, 1}, 1, 30});
  first.join();
  CHECK(other.kind == FailureKind::state && tells(other, "two processes are rank 0"));
  CHECK_EQUAL(host.failure, std::string());
  CHECK_EQUAL(guest.failure, std::string());
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));  // nothing is waited for
}

SHIM_TEST(the_wait_can_be_interrupted) {
  int checks = 0;
  try {
    const auto check = [&] {
      if (++checks == 3) throw Interrupted();
    };
    meet({new_key(), "g", {0, 1}, 0, 10}, check, [](Encounter&&) {});
    throw std::runtime_error("not interrupted");
  } catch (const Interrupted&) {
  }
}

SHIM_TEST(processes_that_say_nothing_keep_nobody_waiting) {
  const std::string key = new_key();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Met> met(2);
  std::thread host([&] { met[0] = try_to_meet({key, "g", {0, 1}, 0, 20}); });
  std::vector<Descriptor> silent;
  while (silent.size() < 40)
    if (Descriptor socket = connect_to(address_of(key))) silent.push_back(std::move(socket));
  met[1] = try_to_meet({key, "g", {0, 1}, 1, 20});
  host.join();
  for (const Met& one : met) CHECK_EQUAL(one.failure, std::string());
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(4));
}

SHIM_TEST(a_rank_with_another_key_of_that_address_is_a_stranger) {
  const std::string key = new_key();
  std::vector<Met> met(2);
  std::thread host([&] { met[0] = try_to_meet({key, "g", {0, 1}, 0, 20}); });
  Descriptor stranger;
  while (!(stranger = connect_to(address_of(key)))) std::this_thread::yield();
  introduce(stranger, {key + " of another", "g", {0, 1}, 1, 20});
  met[1] = try_to_meet({key, "g", {0, 1}, 1, 20});
  host.join();
  for (const Met& one : met) CHECK_EQUAL(one.failure, std::string());
  CHECK_EQUAL(receive_message(stranger, 0)->bytes, std::string());
}

SHIM_TEST(one_that_is_interrupted_while_it_joins_is_told) {
  for (const int interrupted : {0, 1}) {
    const std::string key = new_key();
    const int other = 1 - interrupted;
    std::thread second([&] {
      try {
        meet({key, "g", {0, 1}, interrupted, 20}, [] {}, [](Encounter&&) { throw Interrupted(); });
      } catch (const Interrupted&) {
      }
    });
    const Met met = try_to_meet({key, "g", {0, 1}, other, 20});
    second.join();
    CHECK(met.kind == FailureKind::peer_lost);
    CHECK(tells(met, "rank " + std::to_string(interrupted) + " could not join group 'g': interrupted"));
    CHECK_EQUAL(met.ranks.at(0), interrupted);
  }
}

SHIM_TEST(memory_is_zeroed_and_cannot_change_its_size) {
  const Segment segment = Segment::create(8192);
  for (std::size_t i = 0; i < segment.size(); ++i) CHECK(segment.data()[i] == std::byte{0});
  CHECK_EQUAL(::ftruncate(segment.file(), 4096), -1);
  CHECK_EQUAL(::ftruncate(segment.file(), 16384), -1);
  try {
    Segment::attach(Descriptor(::dup(segment.file())), 4096);
    throw std::runtime_error("attached with another size");
  } catch (const Failure& failure) {
    CHECK(failure.kind == FailureKind::engine);
  }
}
