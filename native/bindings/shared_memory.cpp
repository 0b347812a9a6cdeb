// Memory for tensors, as Python holds it.
#include "shared_memory.hpp"

#include <nanobind/stl/string.h>

#include "../dtypes.hpp"
#include "../shared_allocation.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace shim::bindings {

void define_shared_memory(nb::module_& module) {
  nb::class_<SharedAllocation>(
      module, "SharedMemory", "Zeroed memory that the ranks of any group can read where it is; freed with this object.")
      .def(nb::init<std::size_t>(), "bytes"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("address", [](const SharedAllocation& memory) { return reinterpret_cast<std::uintptr_t>(memory.data()); });
  module.def(
      "dtype_bytes", [](const std::string& name) { return bytes_of(dtype_named(name)); }, "name"_a,
      "The bytes of an element of the dtype called so, 0 when there is none.");
}

}  // namespace shim::bindings
