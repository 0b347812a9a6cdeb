// The part of the Python module that makes memory for tensors.
#pragma once

#include <nanobind/nanobind.h>

namespace shim::bindings {

void define_shared_tensors(nanobind::module_& module);

}  // namespace shim::bindings
