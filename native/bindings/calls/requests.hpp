// Checked calls as other engines than the one here take them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "bindings/tensors/tensor_reader.hpp"
#include "collectives/operation.hpp"

namespace shim::bindings {

// The operation that begins with the agreement on `request`, and goes on with move(request). Its owners go into
// `owners`. What `move` raises gives the group up, and ends the operation; `is_carried` is as Request::begun has it.
std::unique_ptr<Operation> begun(nanobind::handle request, nanobind::handle move, bool is_carried, Owners& owners);

void define_requests(nanobind::module_& module);

}  // namespace shim::bindings
