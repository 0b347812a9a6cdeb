// The arguments of a collective as a frontend gave them, and the checks that one rank can make on its own.
// Messages name an argument by its role in braces; the Python side puts in the frontend's name for it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tensors/counts.hpp"
#include "tensors/dtypes.hpp"
#include "tensors/tensor_view.hpp"

namespace shim {

// One tensor, or a list with one tensor for each rank; with its role: output, input.
struct TensorArgument {
  std::string_view role;
  std::optional<TensorView> single;
  std::vector<TensorView> list;
  bool is_list = false;

  const TensorView& tensor() const { return is_list ? list.front() : *single; }
  std::span<const TensorView> views() const {
    return is_list ? std::span<const TensorView>(list) : std::span<const TensorView>(&*single, single ? 1 : 0);
  }
};

// Rows of dimension 0 for each rank, or nothing for equal parts.
struct SplitArgument {
  std::string_view role;
  std::optional<std::vector<std::int64_t>> rows;
};

// Throw Failure(argument), Failure(rank) or Failure(tensor).
void check_rank(std::string_view role, int rank, int size);
void check_op(ReduceOp op, Dtype dtype);
void check_writable(const TensorArgument& output);
void check_same_dtype(const TensorArgument& a, const TensorArgument& b);
void check_same_count(const TensorArgument& a, const TensorArgument& b);
// `whole` is the parts of so many ranks, stacked or one after the other. Of vectors nothing is asked here: the number
// of elements, which other checks compare, says it all.
void check_whole(const TensorArgument& whole, const TensorArgument& part, int ranks);

// The elements of each rank's part of `tensors`. One tensor without splits is cut into equal numbers of rows.
Counts part_counts(const TensorArgument& tensors, const SplitArgument& splits, int size);
// Likewise for what is gathered from inputs of `each` elements: only the number of elements matters.
Counts gathered_counts(const TensorArgument& outputs, const SplitArgument& splits, int size,
                       const TensorArgument& input);
// The part of this rank must be as large as `own`.
void check_own_part(const TensorArgument& parts, const Counts& counts, int rank, const TensorArgument& own);

}  // namespace shim
