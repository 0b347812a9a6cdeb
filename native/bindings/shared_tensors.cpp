// Memory for tensors, as Python holds it.
#include "bindings/shared_tensors.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/array_allocations.hpp"
#include "hooks/allocation_hook.hpp"
#include "lending/shared_allocation.hpp"
#include "lending/shared_arena.hpp"
#include "tensors/dtypes.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace shim::bindings {

void define_shared_tensors(nb::module_& module) {
  nb::class_<SharedAllocation>(
      module, "SharedMemory", "Zeroed memory that the ranks of any group can read where it is; freed with this object.")
      .def(nb::init<std::size_t>(), "bytes"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("address", [](const SharedAllocation& memory) { return reinterpret_cast<std::uintptr_t>(memory.data()); });
  module.def("share_allocations", &share_allocations, "at_least"_a,
             "Send this thread's hooked allocations of so many bytes and more to shared memory, none with 0; tell what "
             "held before.");
  module.def("hook_aligned_allocations", &hook_aligned_allocations, "library"_a,
             "Hook what the loaded library of this file name allocates aligned; False when it does not.");
  module.def("set_array_allocator", &set_array_allocator, "array_api"_a, "handler"_a.none(),
             "Make numpy allocate arrays by a handler, a hooked one with None; return the one that did before.");
  module.def(
      "is_shared",
      [](std::uintptr_t address, std::size_t bytes) {
        return SharedAllocation::find(reinterpret_cast<const std::byte*>(address), bytes).has_value();
      },
      "address"_a, "bytes"_a, "Whether other ranks could read these bytes where they are.");
  module.def(
      "arena_usage",
      [] {
        const SharedArena::Usage usage = SharedArena::instance().usage();
        return std::tuple(usage.allocated, usage.reserved, usage.files);
      },
      "How many bytes hooked allocations have in shared memory, how many are reserved for them, and in how many "
      "files.");
  module.def(
      "dtype_bytes", [](const std::string& name) { return bytes_of(dtype_named(name)); }, "name"_a,
      "The bytes of an element of the dtype called so, 0 when there is none.");
}

}  // namespace shim::bindings
