// Which of two ways to do something large is the faster one: that differs between processors, and where the ranks run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace shim {

// Finds it out on the first pieces of what one thread does, which all have to be equally large. Where there are few
// pieces, all go the first way.
class FasterWay {
 public:
  explicit FasterWay(std::size_t pieces) : is_known_(pieces < worth_trying) {}

  // Does the next piece: go(whether it is to go the first way).
  template <class Go>
  void piece(const Go& go) {
    if (is_known_) return go(is_first_);
    const auto since = Clock::now();
    go(gone_ % 2 == 0);
    shortest(gone_) = std::min(shortest(gone_), Clock::now() - since);
    if (++gone_ < tried) return;
    is_known_ = true;
    is_first_ = shortest(0) <= shortest(1);
  }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr int tried = 4;  // pieces, each way in turns
  static constexpr std::size_t worth_trying = 8;

  Clock::duration& shortest(int piece) { return shortest_[piece % 2]; }

  int gone_ = 0;
  bool is_known_;
  bool is_first_ = true;
  Clock::duration shortest_[2] = {Clock::duration::max(), Clock::duration::max()};
};

}  // namespace shim
