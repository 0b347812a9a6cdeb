// How many elements each rank's part has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace shim {

// One number where all parts are equally large, for which nothing is allocated; otherwise a table, by rank.
class Counts {
 public:
  Counts() = default;
  Counts(int ranks, std::uint64_t each) : ranks_(static_cast<std::size_t>(ranks)), each_(each) {}
  explicit Counts(std::vector<std::uint64_t> by_rank) : ranks_(by_rank.size()), each_(ranks_ > 0 ? by_rank[0] : 0) {
    const auto differs = [this](std::uint64_t count) { return count != each_; };
    if (std::any_of(by_rank.begin(), by_rank.end(), differs)) by_rank_ = std::move(by_rank);
  }

  std::size_t ranks() const { return ranks_; }
  bool are_equal() const { return by_rank_.empty(); }
  std::uint64_t operator[](std::size_t rank) const { return are_equal() ? each_ : by_rank_[rank]; }
  std::uint64_t largest() const { return are_equal() ? each_ : *std::max_element(by_rank_.begin(), by_rank_.end()); }
  std::uint64_t total() const {
    return are_equal() ? ranks_ * each_ : std::accumulate(by_rank_.begin(), by_rank_.end(), std::uint64_t{0});
  }
  // Empty where they are equal.
  const std::vector<std::uint64_t>& by_rank() const { return by_rank_; }

 private:
  std::size_t ranks_ = 0;
  std::uint64_t each_ = 0;
  std::vector<std::uint64_t> by_rank_;
};

}  // namespace shim
