#include "bindings/tensors/view_checks.hpp"

#include <dlpack/dlpack.h>

#include <algorithm>
#include <utility>

#include "platform/failure.hpp"

namespace shim::bindings {
namespace {

std::string with_role(std::string text, std::string_view role) {
  const std::string braced = "{" + std::string(role) + "}";
  for (std::size_t at = text.find("{role}"); at != std::string::npos; at = text.find("{role}", at + 1))
    text.replace(at, 6, braced);
  return text;
}

}  // namespace

void reject(const std::string& message, std::string_view role) {
  throw Failure(FailureKind::tensor, with_role(message, role));
}

Device device_of(int type, int number) {
  if (type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost) return {};
  constexpr auto fitting = [](int value) { return std::in_range<std::int16_t>(value) ? value : -1; };
  return {static_cast<std::int16_t>(fitting(type)), static_cast<std::int16_t>(fitting(number))};
}

void check_in_host_memory(const TensorView& view, std::string_view role) {
  if (view.device.is_host()) return;
  throw DeviceFailure(
      with_role("{role} must be in host memory, got a tensor on " + name_of(view.device) +
                    "\nThe engine reaches host memory alone: pass tensor.cpu(), and read the result there.",
                role),
      view.device);
}

void set_dimensions(TensorView& view, std::int64_t dimensions, std::string_view role) {
  if (dimensions < 0) reject("{role} has " + std::to_string(dimensions) + " dimensions", role);
  if (dimensions > static_cast<std::int64_t>(max_dimensions))
    reject("{role} must have at most " + std::to_string(max_dimensions) + " dimensions, got " +
               std::to_string(dimensions) + "\nReshape it.",
           role);
  view.dimensions = static_cast<int>(dimensions);
}

void check_extents(const TensorView& view, std::string_view role) {
  const auto itemsize = static_cast<std::int64_t>(bytes_of(view.dtype));
  std::int64_t bytes = itemsize;
  std::int64_t span = itemsize;  // bytes from the lowest to the highest element
  bool is_too_large = false;
  for (std::size_t d = 0; d < static_cast<std::size_t>(view.dimensions); ++d) {
    const std::int64_t extent = view.shape[d];
    if (extent < 0) reject("{role} has a dimension of " + std::to_string(extent) + " elements", role);
    // An empty dimension counts as one: what the others come to without it is multiplied too.
    is_too_large |= __builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes);
    if (extent < 2) continue;
    std::int64_t reach = 0;
    is_too_large |= __builtin_mul_overflow(view.strides[d], extent - 1, &reach);
    is_too_large |= __builtin_mul_overflow(reach, reach < 0 ? -itemsize : itemsize, &reach);
    is_too_large |= __builtin_add_overflow(span, reach, &span);
  }
  if (is_too_large) reject("{role} has more elements, or further apart, than any memory has bytes", role);
}

void check_memory(const TensorView& view, std::string_view role) {
  if (view.data == nullptr && view.count() > 0)
    reject("{role} has no memory: it is not initialised, or holds its elements elsewhere", role);
}

}  // namespace shim::bindings
