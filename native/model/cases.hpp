// All protocols that are looked at, as they are and broken.
#pragma once

#include <vector>

#include "model/checker.hpp"

namespace shim::model {

std::vector<Case> arrival_cases();     // arrival.cpp of the engine
std::vector<Case> exchange_cases();    // exchange.hpp
std::vector<Case> doorbell_cases();    // sleep_until_rung and ring_bell of group.cpp
std::vector<Case> direct_cases();      // direct.cpp
std::vector<Case> failure_cases();     // group_failures.cpp
std::vector<Case> channel_cases();     // point_to_point.cpp
std::vector<Case> rooms_cases();       // channel_rooms.cpp
std::vector<Case> lent_copy_cases();   // lent_copy.cpp
std::vector<Case> reserve_cases();     // ring_memory.cpp
std::vector<Case> withdrawal_cases();  // withdrawal.cpp

// `names` of what is broken, by number from 1; each is to be noticed with the number of ranks beside it.
struct Break {
  const char* name;
  int ranks;
};
inline std::vector<Case> cases_of(const char* protocol, std::vector<int> sizes, std::vector<Break> breaks,
                                  Outcome (*run)(int, int)) {
  std::vector<Case> cases;
  for (const int ranks : sizes) cases.push_back({protocol, ranks, "", run, 0});
  for (std::size_t i = 0; i < breaks.size(); ++i)
    cases.push_back({protocol, breaks[i].ranks, breaks[i].name, run, static_cast<int>(i) + 1});
  return cases;
}

}  // namespace shim::model
