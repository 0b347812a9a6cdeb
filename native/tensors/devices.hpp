// Where a tensor's memory is: the host's, or a device's by DLPack's type and number.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "platform/failure.hpp"

namespace shim {

struct Device {
  std::int16_t type = 0;  // as DLPack numbers them, and 0 for host memory of any kind
  std::int16_t number = 0;

  bool is_host() const { return type == 0; }
  bool operator==(const Device&) const = default;
};

// By DLPack's numbers; those of host memory, and those that stand for nothing, have no name.
inline constexpr std::array<std::string_view, 19> device_names = {
    "cpu", "",          "cuda",         "",       "opencl", "",        "",     "vulkan",  "metal", "vpi", "rocm",
    "",    "extension", "cuda_managed", "oneapi", "webgpu", "hexagon", "maia", "trainium"};

inline std::string name_of_device_type(int type) {
  const auto at = static_cast<std::size_t>(type);
  const bool is_named = type >= 0 && at < device_names.size() && !device_names[at].empty();
  return is_named ? std::string(device_names[at]) : "DLPack device type " + std::to_string(type);
}

inline std::string name_of(Device device) {
  const std::string type = name_of_device_type(device.type);
  return device.is_host() ? type : type + ":" + std::to_string(device.number);
}

// Of an engine that reaches host memory alone, for a tensor that is elsewhere: another engine may take the call.
class DeviceFailure : public Failure {
 public:
  DeviceFailure(const std::string& message, Device device) : Failure(FailureKind::tensor, message), device(device) {}

  Device device;
};

}  // namespace shim
