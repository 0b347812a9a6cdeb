// Reads the tensors of any framework, without copying their elements.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>
#include <vector>

#include "../arguments.hpp"

namespace shim::bindings {

// Objects that keep the memory of tensors alive.
using Owners = std::vector<nanobind::object>;

// `chooser` is shim.core.tensors.reader_for: it says, once for each type of tensor, how it is read.
void set_reader_chooser(nanobind::callable chooser);

// Throws Failure(tensor) for what cannot be read, or lies where the engine cannot reach.
TensorArgument read_tensor(nanobind::handle object, std::string_view role, Owners& owners);
// A tensor, or a list or tuple of tensors.
TensorArgument read_tensors(nanobind::handle object, std::string_view role, Owners& owners);
// None, or a sequence of integers.
SplitArgument read_splits(nanobind::handle object, std::string_view role);

}  // namespace shim::bindings
