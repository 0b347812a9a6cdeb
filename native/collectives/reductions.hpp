// What the reducing collectives share: the ranks' data of one piece, in rank order, combined.
#pragma once

#include <algorithm>
#include <vector>

#include "collectives/reduce_kernels.hpp"
#include "group/group.hpp"
#include "machine/copies.hpp"
#include "machine/prefetch.hpp"

namespace shim {

// Combines the data of all ranks for one operation, which has been agreed on.
class RankCombiner {
 public:
  RankCombiner(const Group& group, std::uint64_t sequence, Dtype dtype, ReduceOp op)
      : size_(group.size()), itemsize_(bytes_of(dtype)), kernel_(fastest_kernel(dtype, op)) {
    if (op != ReduceOp::premul_sum) return;
    for (int rank = 0; rank < size_; ++rank) factors_.push_back(group.call(rank, sequence).factor);
  }

  // Writes `bytes` bytes, combined of those that begin at source_of(rank) for each rank; to `copy` too, if it is not
  // null.
  template <class SourceOf>
  void operator()(std::byte* output, std::byte* copy, std::size_t bytes, const SourceOf& source_of) const {
    const std::byte* sources[max_ranks];
    for (int rank = 0; rank < size_; ++rank) sources[rank] = source_of(rank);
    kernel_(output, copy, sources, static_cast<std::size_t>(size_), factors_.data(), bytes / itemsize_);
  }

  // The same in blocks: take(place, block, bytes) is given each as long as it is in the fastest cache, and may
  // stream it. The data of some ranks comes from memory, is_fetched(rank): it is asked for a block ahead.
  template <class IsFetched, class SourceOf, class Take>
  void in_blocks(const IsFetched& is_fetched, std::size_t bytes, const SourceOf& source_of, const Take& take) const {
    const std::byte* sources[max_ranks];
    for (int rank = 0; rank < size_; ++rank) sources[rank] = source_of(rank);  // here: it may wait, and throw
    in_blocks_between(is_fetched, 0, bytes, bytes, sources, take);
    finish_streaming();
  }

  // The same of the bytes from `begin` to `end`, of `sources` that are asked ahead for what they have until
  // `fetch_end`; does not finish streaming.
  template <class IsFetched, class Take>
  void in_blocks_between(const IsFetched& is_fetched, std::size_t begin, std::size_t end, std::size_t fetch_end,
                         const std::byte* const* sources, const Take& take) const {
    alignas(64) std::byte made[block_bytes];
    for (std::size_t at = begin; at < end; at += block_bytes) {
      const std::size_t length = std::min(block_bytes, end - at);
      const std::size_t ahead = std::min(block_bytes, fetch_end - at - length);
      for (int rank = 0; rank < size_; ++rank)
        if (is_fetched(rank)) prefetch_to_read(sources[rank] + at + length, ahead);
      (*this)(made, nullptr, length, [&](int rank) { return sources[rank] + at; });
      take(at, made, length);
    }
  }

 private:
  static constexpr std::size_t block_bytes = 4096;  // whole elements of every dtype

  int size_;
  std::size_t itemsize_;
  Kernel kernel_;
  std::vector<double> factors_;  // of every rank for PREMUL_SUM; empty for other ops
};

}  // namespace shim
