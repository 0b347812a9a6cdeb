// How numpy allocates the elements of arrays.
#pragma once

#include <nanobind/nanobind.h>

namespace shim::bindings {

// `array_api` is numpy's _ARRAY_API. `handler` is one of numpy's memory handlers, or None for the one whose functions
// are those of allocation_hook.hpp. Holds in the caller's context (contextvars). Returns the handler that held before.
nanobind::object set_array_allocator(nanobind::handle array_api, nanobind::handle handler);

}  // namespace shim::bindings
