// Tensors as DLPack describes them. What says so may be any library, so that nothing of it is believed.
#pragma once

#include <dlpack/dlpack.h>

#include <string_view>

#include "tensors/tensor_view.hpp"

namespace shim::bindings {

// Both throw Failure(tensor): for another version's table, and for what is no tensor or cannot be carried.
void check_version(const DLPackVersion& version, std::string_view role);
TensorView view_of(const DLTensor& tensor, bool read_only, std::string_view role);

}  // namespace shim::bindings
