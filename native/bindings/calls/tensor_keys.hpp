// What a recording knows a call's tensors by, for those that write down every call.
#pragma once

#include <nanobind/nanobind.h>

namespace shim::bindings {

// Bytes that are equal for tensors of equal dtypes and shapes, and for lists of as many such tensors. Either may be
// None. Throws Failure(tensor) for what cannot be read.
nanobind::bytes tensor_key(nanobind::handle outputs, nanobind::handle inputs);

// The elements of one tensor in row-major order, copied.
nanobind::bytes packed_elements(nanobind::handle tensor);

}  // namespace shim::bindings
