// What is known of a rank on another host, which writes nothing here: as it tells it, kept by each rank for itself.
//
// Its arrivals, and the data that comes with them, are in the memory that the ranks of this host share: their leader
// puts them there (crossing/).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "group/shared_layout.hpp"

namespace shim {

struct Elsewhere {
  StatusLine status{};
  RankNote note{};
  std::array<CallPlace, call_slots> places{};
  std::atomic<std::uint64_t> arrived{0};  // the last operation that it said it has arrived at, when it was asked
};

}  // namespace shim
