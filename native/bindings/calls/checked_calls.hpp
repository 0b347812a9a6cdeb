// Reads the arguments that Python gives a collective, and checks what one rank can check: for the engine here, which
// carries the operation out at once, and for the requests that other engines take. Each ends with
// then(operation, tensors...).
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bindings/tensors/tensor_reader.hpp"
#include "collectives/collectives.hpp"

namespace shim::bindings {

// Of a member of shim.core.reduce_ops.ReduceOp; as an argument of type int it would be converted by way of a copy.
inline ReduceOp reduce_op_of(nanobind::handle op) {
  const long number = PyLong_AsLong(op.ptr());
  if (number == -1 && PyErr_Occurred()) throw nanobind::python_error();
  if (number < 0 || number >= static_cast<long>(ReduceOp::count_))
    throw Failure(FailureKind::argument, "{op} is not a reduce op: " + std::to_string(number));
  return static_cast<ReduceOp>(number);
}

// What only the root gives; on the other ranks it is not looked at.
template <class Read>
TensorArgument on_root(Seat seat, nanobind::handle object, std::string_view role, int root, Owners& owners,
                       const Read& read) {
  check_rank("root", root, seat.size);
  if (seat.rank != root) return {role, std::nullopt, {}, false};
  if (object.is_none()) throw Failure(FailureKind::argument, "{" + std::string(role) + "} must be given on the root");
  return read(object, role, owners);
}

template <class Then>
auto checked_broadcast(Seat seat, Owners& owners, nanobind::handle tensor, int root, const Then& then) {
  const TensorArgument what = read_tensor(tensor, "tensor", owners);
  if (seat.rank != root) owners.are_written_from(0);
  return then(make_broadcast(seat, what, root), what);
}

template <class Then>
auto checked_all_reduce(Seat seat, Owners& owners, nanobind::handle output, nanobind::handle input, nanobind::handle op,
                        double factor, const Then& then) {
  const TensorArgument from = read_tensor(input, "input", owners);
  owners.are_written_from(0);
  const TensorArgument to = output.is(input) ? TensorArgument{"output", from.single, {}, false}
                                             : read_output(read_tensor, output, "output", owners);
  return then(make_all_reduce(seat, to, from, {reduce_op_of(op), factor}), to, from);
}

template <class Then>
auto checked_reduce(Seat seat, Owners& owners, nanobind::handle output, nanobind::handle input, nanobind::handle op,
                    int root, double factor, const Then& then) {
  const TensorArgument from = read_tensor(input, "input", owners);
  const TensorArgument to =
      on_root(seat, output, "output", root, owners, [](auto&... given) { return read_output(read_tensor, given...); });
  return then(make_reduce(seat, to, from, {reduce_op_of(op), factor}, root), to, from);
}

template <class Then>
auto checked_all_gather(Seat seat, Owners& owners, nanobind::handle outputs, nanobind::handle input,
                        nanobind::handle output_splits, bool whole, const Then& then) {
  const TensorArgument to = read_output(whole ? read_whole : read_tensors, outputs, "output", owners);
  const TensorArgument from = read_tensor(input, "input", owners);
  if (whole) check_whole(to, from, seat.size);
  return then(make_all_gather(seat, to, from, read_splits(output_splits, "output_splits")), to, from);
}

template <class Then>
auto checked_gather(Seat seat, Owners& owners, nanobind::handle outputs, nanobind::handle input, int root,
                    nanobind::handle output_splits, const Then& then) {
  const TensorArgument to = on_root(seat, outputs, "output", root, owners,
                                    [](auto&... given) { return read_output(read_tensors, given...); });
  const TensorArgument from = read_tensor(input, "input", owners);
  return then(make_gather(seat, to, from, read_splits(output_splits, "output_splits"), root), to, from);
}

template <class Then>
auto checked_scatter(Seat seat, Owners& owners, nanobind::handle output, nanobind::handle inputs, int root,
                     nanobind::handle input_splits, const Then& then) {
  const TensorArgument to = read_output(read_tensor, output, "output", owners);
  const TensorArgument from = on_root(seat, inputs, "input", root, owners, read_tensors);
  return then(make_scatter(seat, to, from, read_splits(input_splits, "input_splits"), root), to, from);
}

template <class Then>
auto checked_reduce_scatter(Seat seat, Owners& owners, nanobind::handle output, nanobind::handle inputs,
                            nanobind::handle op, double factor, nanobind::handle input_splits, bool whole,
                            const Then& then) {
  const TensorArgument to = read_output(read_tensor, output, "output", owners);
  const TensorArgument from = (whole ? read_whole : read_tensors)(inputs, "input", owners);
  if (whole) check_whole(from, to, seat.size);
  const SplitArgument splits = read_splits(input_splits, "input_splits");
  return then(make_reduce_scatter(seat, to, from, splits, {reduce_op_of(op), factor}), to, from);
}

template <class Then>
auto checked_all_to_all(Seat seat, Owners& owners, nanobind::handle outputs, nanobind::handle inputs,
                        nanobind::handle output_splits, nanobind::handle input_splits, bool whole, const Then& then) {
  const auto read = whole ? read_whole : read_tensors;
  const TensorArgument to = read_output(read, outputs, "output", owners);
  const TensorArgument from = read(inputs, "input", owners);
  const SplitArgument to_splits = read_splits(output_splits, "output_splits");
  const SplitArgument from_splits = read_splits(input_splits, "input_splits");
  return then(make_all_to_all(seat, to, from, to_splits, from_splits), to, from);
}

}  // namespace shim::bindings
