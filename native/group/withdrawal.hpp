// What tells whether a rank can give an operation up, or another one may have the result already: see withdrawal.cpp.
#pragma once

#include <cstdint>

namespace shim {

// Beside the number of an operation in an ArrivalLine: its rank is about to give the operation up, or has done so.
inline constexpr std::uint64_t withdrawing = std::uint64_t{1} << 63;
inline constexpr std::uint64_t withdrawn = std::uint64_t{1} << 62;

// What shows that a rank has given all that the others need of it in an operation: that it has arrived, if it gives
// nothing more, and that its counters have come so far.
struct Given {
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  int only = -1;               // the one rank that fills slots
  int but = -1;                // the one rank that fills none
  std::uint64_t filled = 0;    // ProgressLine::ready
  bool may_be_first = false;   // of which the slot that was filled before the arrival is the last
  std::uint64_t made = 0;      // ProgressLine::made
  std::uint64_t agreed = 0;    // DirectLine::agreed, of every rank, where the ranks agree within the operation
  std::uint64_t finished = 0;  // DirectLine::finished, of every rank

  bool fills(int rank) const { return (only < 0 || rank == only) && rank != but; }
};

}  // namespace shim
