#include "bindings/array_allocations.hpp"

#include <cstdint>

#include "hooks/allocation_hook.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

// A handler as numpy's C API defines it (NEP 49, version 1), declared here to build without numpy.
struct ArrayAllocator {
  void* context;
  void* (*malloc)(void* context, std::size_t bytes);
  void* (*calloc)(void* context, std::size_t count, std::size_t bytes);
  void* (*realloc)(void* context, void* data, std::size_t bytes);
  void (*free)(void* context, void* data, std::size_t bytes);
};
struct ArrayAllocationHandler {
  char name[127];  // shown by numpy.core.multiarray.get_handler_name
  std::uint8_t version;
  ArrayAllocator allocator;
};

constexpr std::size_t place_of_set_handler = 304;  // PyDataMem_SetHandler among numpy's C functions, since 1.22

// Never destroyed: arrays keep it.
ArrayAllocationHandler hooked_handler = {
    "shim_shared_allocations",
    1,
    {nullptr, [](void*, std::size_t bytes) { return shared_or_ordinary_malloc(bytes); },
     [](void*, std::size_t count, std::size_t bytes) { return shared_or_ordinary_calloc(count, bytes); },
     [](void*, void* data, std::size_t bytes) { return shared_or_ordinary_realloc(data, bytes); },
     [](void*, void* data, std::size_t) { shared_or_ordinary_free(data); }}};

}  // namespace

nb::object set_array_allocator(nb::handle array_api, nb::handle handler) {
  auto** const functions = static_cast<void**>(PyCapsule_GetPointer(array_api.ptr(), nullptr));
  if (functions == nullptr) throw nb::python_error();
  const auto set_handler = reinterpret_cast<PyObject* (*)(PyObject*)>(functions[place_of_set_handler]);
  nb::object capsule = nb::borrow(handler);
  if (handler.is_none()) {
    capsule = nb::steal(PyCapsule_New(&hooked_handler, "mem_handler", nullptr));
    if (!capsule.is_valid()) throw nb::python_error();
  }
  PyObject* const before = set_handler(capsule.ptr());
  if (before == nullptr) throw nb::python_error();
  return nb::steal(before);
}

}  // namespace shim::bindings
