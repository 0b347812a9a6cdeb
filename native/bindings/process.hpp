// What Python sets for all groups of this process, and asks of this and other processes.
#pragma once

#include <nanobind/nanobind.h>

namespace shim::bindings {

void define_process(nanobind::module_& module);

}  // namespace shim::bindings
