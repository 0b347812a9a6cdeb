#include "group/crowd.hpp"

#include <sched.h>

#include <algorithm>
#include <array>

#include "platform/pause.hpp"

namespace shim {
namespace {

constexpr int looks = 64;                                      // a few microseconds
constexpr auto between_moves = std::chrono::milliseconds(10);  // a move takes some 20 us

}  // namespace

void Crowd::tell_processor() {
  const std::int32_t told = ::sched_getcpu() + 1;
  std::atomic<std::int32_t>& mine = processor(rank_);
  if (mine.load(std::memory_order_relaxed) != told) mine.store(told, std::memory_order_relaxed);
}

bool Crowd::keeps_from_running(const std::function<bool(int)>& is_awaited) const {
  const std::int32_t here = processor(rank_).load(std::memory_order_relaxed);
  for (int rank = 0; rank < size(); ++rank)
    if (rank != rank_ && processor(rank).load(std::memory_order_relaxed) == here && is_awaited(rank)) return true;
  return false;
}

int Crowd::better_processor() const {
  std::array<int, CPU_SETSIZE> ranks_at{};
  const int here = processor(rank_).load(std::memory_order_relaxed) - 1;
  if (here < 0 || here >= CPU_SETSIZE) return -1;
  bool is_last_here = true;  // one rank moves at a time
  for (int rank = 0; rank < size(); ++rank) {
    const int there = processor(rank).load(std::memory_order_relaxed) - 1;
    if (there < 0 || there >= CPU_SETSIZE) continue;
    ++ranks_at[static_cast<std::size_t>(there)];
    if (there == here && rank > rank_) is_last_here = false;
  }
  cpu_set_t usable;
  if (!is_last_here || ::sched_getaffinity(0, sizeof(usable), &usable) != 0) return -1;
  int best = here;
  for (int other = 0; other < CPU_SETSIZE; ++other)
    if (CPU_ISSET(other, &usable) &&
        ranks_at[static_cast<std::size_t>(other)] < ranks_at[static_cast<std::size_t>(best)])
      best = other;
  return ranks_at[static_cast<std::size_t>(here)] - ranks_at[static_cast<std::size_t>(best)] >= 2 ? best : -1;
}

void Crowd::spread_out(Clock::time_point now) {
  if (now.time_since_epoch().count() < next_look_.load(std::memory_order_relaxed)) return;
  next_look_.store((now + between_moves).time_since_epoch().count(), std::memory_order_relaxed);
  tell_processor();
  const int better = better_processor();
  cpu_set_t before;
  if (better < 0 || ::sched_getaffinity(0, sizeof(before), &before) != 0) return;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(better, &only);
  if (::sched_setaffinity(0, sizeof(only), &only) != 0) return;
  if (::sched_setaffinity(0, sizeof(before), &before) != 0) {  // what it may use has been changed meanwhile
    std::fill_n(reinterpret_cast<unsigned char*>(&before), sizeof(before), 0xff);
    ::sched_setaffinity(0, sizeof(before), &before);
    next_look_.store(Clock::time_point::max().time_since_epoch().count(), std::memory_order_relaxed);
  }
  tell_processor();
}

void Crowd::note_wait(bool in_vain) {
  const int yields = yields_.load(std::memory_order_relaxed);
  const int better = in_vain ? std::max(yields / 2, least_yields) : std::min(yields + 1, most_yields);
  if (better != yields) yields_.store(better, std::memory_order_relaxed);
}

bool CrowdTurns::take(const std::function<bool(int)>& is_awaited) {
  if (looks_ > 0) {
    --looks_;
    pause_processor();
    return true;
  }
  if (yields_ == most_) return false;
  if (!has_looked_ && !crowd_.keeps_from_running(is_awaited)) {
    looks_ = looks;
    has_looked_ = true;
    return true;
  }
  has_looked_ = false;
  ++yields_;
  ::sched_yield();
  crowd_.tell_processor();
  crowd_.spread_out(Crowd::Clock::now());
  return true;
}

}  // namespace shim
