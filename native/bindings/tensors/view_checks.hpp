// What is refused of a tensor before the engine reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensors/tensor_view.hpp"

namespace shim::bindings {

// Throws Failure(tensor) with `message`, in which {role} stands for the argument's role; the others do likewise.
[[noreturn]] void reject(const std::string& message, std::string_view role);

// By DLPack's numbers.
Device device_of(int type, int number);
// Throws DeviceFailure for what is not.
void check_in_host_memory(const TensorView& view, std::string_view role);
void set_dimensions(TensorView& view, std::int64_t dimensions, std::string_view role);
// Refuses extents below zero, and elements that are further apart, or more of them, than any memory has bytes.
void check_extents(const TensorView& view, std::string_view role);
void check_memory(const TensorView& view, std::string_view role);

}  // namespace shim::bindings
