// The ways a tensor can be read: DLPack, the buffer protocol, and a description made in Python.
#pragma once

#include <dlpack/dlpack.h>
#include <nanobind/nanobind.h>

#include <string_view>

#include "bindings/tensors/tensor_reader.hpp"
#include "bindings/tensors/view_checks.hpp"

namespace shim::bindings {

// All throw Failure(tensor), and put what keeps the memory alive into `owners`.
TensorView read_by_exchange(const DLPackExchangeAPI& exchange, nanobind::handle object, std::string_view role,
                            Owners& owners);
TensorView read_by_dlpack(nanobind::handle object, std::string_view role, Owners& owners);
// An array of numpy, whose memory a reference holds as well as an export does.
TensorView read_by_array(nanobind::handle object, std::string_view role, Owners& owners);
// Any other object with the buffer protocol: what it exports must not be resized.
TensorView read_by_buffer(nanobind::handle object, std::string_view role, Owners& owners);
// `describe` makes a shim.core.tensors.Description of the object.
TensorView read_by_description(const nanobind::object& describe, nanobind::handle object, std::string_view role,
                               Owners& owners);

// Throws Failure(tensor) with what a Python error says.
[[noreturn]] void reject(const nanobind::python_error& error, std::string_view role);

}  // namespace shim::bindings
