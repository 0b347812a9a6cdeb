#include "bindings/tensors/dlpack_view.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "bindings/tensors/view_checks.hpp"

namespace shim::bindings {
namespace {

Dtype dtype_of(const DLDataType& type) {
  if (type.lanes != 1) return Dtype::none;
  const std::size_t bytes = type.bits % 8 == 0 ? type.bits / 8 : 0;
  const auto of_bits = [&type](int bits, Dtype dtype) { return type.bits == bits ? dtype : Dtype::none; };
  switch (type.code) {
    case kDLBool:
      return of_bits(8, Dtype::boolean);
    case kDLInt:
      return signed_of(bytes);
    case kDLUInt:
      return unsigned_of(bytes);
    case kDLFloat:
      return float_of(bytes);
    case kDLComplex:
      return complex_of(bytes);
    case kDLBfloat:
      return of_bits(16, Dtype::bfloat16);
    case kDLFloat8_e3m4:
      return of_bits(8, Dtype::float8_e3m4);
    case kDLFloat8_e4m3:
      return of_bits(8, Dtype::float8_e4m3);
    case kDLFloat8_e4m3b11fnuz:
      return of_bits(8, Dtype::float8_e4m3b11fnuz);
    case kDLFloat8_e4m3fn:
      return of_bits(8, Dtype::float8_e4m3fn);
    case kDLFloat8_e4m3fnuz:
      return of_bits(8, Dtype::float8_e4m3fnuz);
    case kDLFloat8_e5m2:
      return of_bits(8, Dtype::float8_e5m2);
    case kDLFloat8_e5m2fnuz:
      return of_bits(8, Dtype::float8_e5m2fnuz);
    case kDLFloat8_e8m0fnu:
      return of_bits(8, Dtype::float8_e8m0fnu);
    default:
      return Dtype::none;
  }
}

std::byte* first_element(const DLTensor& tensor, std::string_view role) {
  if (tensor.data == nullptr) return nullptr;
  std::uintptr_t address = 0;
  if (__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(tensor.data), tensor.byte_offset, &address))
    reject("{role} begins " + std::to_string(tensor.byte_offset) + " bytes behind its memory", role);
  return reinterpret_cast<std::byte*>(address);
}

}  // namespace

void check_version(const DLPackVersion& version, std::string_view role) {
  if (version.major == DLPACK_MAJOR_VERSION) return;
  reject("{role} is described by DLPack " + std::to_string(version.major) + "." + std::to_string(version.minor) +
             ", and this project reads version " + std::to_string(DLPACK_MAJOR_VERSION),
         role);
}

TensorView view_of(const DLTensor& tensor, bool read_only, std::string_view role) {
  TensorView view;
  view.device = device_of(tensor.device.device_type, tensor.device.device_id);
  view.dtype = dtype_of(tensor.dtype);
  if (view.dtype == Dtype::none)
    reject("{role} has elements that cannot be carried: DLPack type code " + std::to_string(tensor.dtype.code) + ", " +
               std::to_string(tensor.dtype.bits) + " bits, " + std::to_string(tensor.dtype.lanes) + " lanes",
           role);
  set_dimensions(view, tensor.ndim, role);
  if (tensor.shape == nullptr && tensor.ndim > 0) reject("{role} has dimensions, and no shape", role);
  view.read_only = read_only;
  std::copy_n(tensor.shape, tensor.ndim, view.shape.begin());
  if (tensor.strides != nullptr)
    std::copy_n(tensor.strides, tensor.ndim, view.strides.begin());
  else
    std::fill_n(view.strides.begin(), tensor.ndim, 0);
  for (std::size_t d = 0; d < static_cast<std::size_t>(tensor.ndim); ++d)
    if (view.shape[d] < 2) view.strides[d] = 1;  // nobody steps there, and it may be anything
  check_extents(view, role);
  if (tensor.strides == nullptr) view.set_contiguous();
  view.data = first_element(tensor, role);
  check_memory(view, role);
  return view;
}

}  // namespace shim::bindings
