// What a recording knows a call's tensors by, for those that write down every call.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace shim::bindings {

// Bytes that are equal for tensors of equal dtypes and shapes, and for lists of as many such tensors. Either may be
// None. Throws Failure(tensor) for what cannot be read, and DeviceFailure for tensors on devices, unless `devices` are
// to be read too.
nanobind::bytes tensor_key(nanobind::handle outputs, nanobind::handle inputs, bool devices);

// The Digest under `key` of a tensor's elements, or of several's in a list one after the other, in row-major order.
std::uint64_t elements_digest(nanobind::handle tensors, std::uint64_t key);

}  // namespace shim::bindings
