// The collectives: each function checks this rank's arguments and returns the operation, ready to be carried out.
// Ranks are group ranks. Throws Failure(argument), Failure(rank) or Failure(tensor).
#pragma once

#include <memory>
#include <string_view>

#include "collectives/operation.hpp"
#include "tensors/arguments.hpp"

namespace shim {

// Who the caller is.
struct Seat {
  int rank;
  int size;
};

// How a reducing collective combines elements.
struct Reduction {
  ReduceOp op;
  double factor;  // of this rank's elements, for PREMUL_SUM
};

// What the ranks say that it comes `before` must be the same text, of which 128 bytes count.
std::unique_ptr<Operation> make_barrier(Seat seat, std::string_view before = {});
std::unique_ptr<Operation> make_broadcast(Seat seat, const TensorArgument& tensor, int root);
std::unique_ptr<Operation> make_all_reduce(Seat seat, const TensorArgument& output, const TensorArgument& input,
                                           Reduction how);
// `output` is used on the root alone.
std::unique_ptr<Operation> make_reduce(Seat seat, const TensorArgument& output, const TensorArgument& input,
                                       Reduction how, int root);
std::unique_ptr<Operation> make_all_gather(Seat seat, const TensorArgument& outputs, const TensorArgument& input,
                                           const SplitArgument& output_splits);
// `outputs` is used on the root alone.
std::unique_ptr<Operation> make_gather(Seat seat, const TensorArgument& outputs, const TensorArgument& input,
                                       const SplitArgument& output_splits, int root);
// `inputs` is used on the root alone.
std::unique_ptr<Operation> make_scatter(Seat seat, const TensorArgument& output, const TensorArgument& inputs,
                                        const SplitArgument& input_splits, int root);
std::unique_ptr<Operation> make_reduce_scatter(Seat seat, const TensorArgument& output, const TensorArgument& inputs,
                                               const SplitArgument& input_splits, Reduction how);
std::unique_ptr<Operation> make_all_to_all(Seat seat, const TensorArgument& outputs, const TensorArgument& inputs,
                                           const SplitArgument& output_splits, const SplitArgument& input_splits);

}  // namespace shim
