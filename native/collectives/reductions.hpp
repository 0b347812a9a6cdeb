// What the reducing collectives share: the ranks' data of one piece, in rank order, combined.
#pragma once

#include <vector>

#include "../group.hpp"
#include "../reduce_kernels.hpp"

namespace shim {

// The factor of every rank for PREMUL_SUM; nothing for other ops.
inline std::vector<double> factors_of(const Group& group, std::uint64_t sequence, ReduceOp op) {
  std::vector<double> factors;
  if (op != ReduceOp::premul_sum) return factors;
  for (int rank = 0; rank < group.size(); ++rank) factors.push_back(group.call(rank, sequence).factor);
  return factors;
}

// Combines `count` elements of all ranks; source_of(rank) is where they are.
template <class SourceOf>
void combine_ranks(const Group& group, Dtype dtype, ReduceOp op, const std::vector<double>& factors, std::byte* output,
                   std::size_t count, const SourceOf& source_of) {
  std::vector<const std::byte*> sources;
  sources.reserve(static_cast<std::size_t>(group.size()));
  for (int rank = 0; rank < group.size(); ++rank) sources.push_back(source_of(rank));
  combine(dtype, op, output, sources, factors, count);
}

}  // namespace shim
