// Ranks that meet, as threads, and what became of it.
#pragma once

#include <unistd.h>

#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "meeting/rendezvous.hpp"
#include "platform/failure.hpp"
#include "tests/check.hpp"

namespace shim::tests {

struct Met {
  std::size_t bytes = 0;
  std::size_t pidfds = 0;
  std::string failure;
  FailureKind kind = FailureKind::argument;
  std::vector<int> ranks;
};

inline std::string new_key() {
  static int number = 0;
  return "test " + std::to_string(::getpid()) + " " + std::to_string(++number);
}

inline Met try_to_meet(
    const Meeting& meeting, const std::function<void()>& join = [] {}, const std::function<void()>& wait = [] {}) {
  Met met;
  try {
    meet(meeting, wait, [&](Encounter&& encounter) {
      met.bytes = encounter.segment.size();
      for (const Descriptor& pidfd : encounter.pidfds) met.pidfds += pidfd.get() >= 0 ? 1 : 0;
      join();
    });
  } catch (const Failure& failure) {
    met.failure = failure.what();
    met.kind = failure.kind;
    met.ranks = failure.ranks;
  }
  return met;
}

inline std::vector<Met> all_meet(const std::vector<Meeting>& meetings) {
  std::vector<Met> met(meetings.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < meetings.size(); ++i) threads.emplace_back([&, i] { met[i] = try_to_meet(meetings[i]); });
  for (std::thread& thread : threads) thread.join();
  return met;
}

inline bool tells(const Met& met, const std::string& text) {
  if (met.failure.find(text) != std::string::npos) return true;
  std::cerr << "looked for: " << text << "\nin: " << met.failure << '\n';
  return false;
}

}  // namespace shim::tests
