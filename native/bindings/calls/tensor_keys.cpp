#include "bindings/calls/tensor_keys.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/tensors/tensor_reader.hpp"
#include "platform/digest.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

void append(std::string& key, nb::handle tensors, std::string_view role, bool devices) {
  if (tensors.is_none()) {
    key += '-';
    return;
  }
  Owners owners;
  if (devices) owners.allow_devices();
  const TensorArgument argument = read_tensors(tensors, role, owners);
  key += argument.is_list ? 'l' : 't';
  for (const TensorView& view : argument.views()) {
    key += static_cast<char>(view.dtype);
    key += static_cast<char>(view.dimensions);
    key.append(reinterpret_cast<const char*>(view.shape.data()),
               sizeof(std::int64_t) * static_cast<std::size_t>(view.dimensions));
  }
  key += ';';
}

}  // namespace

nb::bytes tensor_key(nb::handle outputs, nb::handle inputs, bool devices) {
  std::string key;
  append(key, outputs, "output", devices);
  append(key, inputs, "input", devices);
  return nb::bytes(key.data(), key.size());
}

std::uint64_t elements_digest(nb::handle tensors, std::uint64_t key) {
  Owners owners;
  const TensorArgument argument = read_tensors(tensors, "input", owners);
  Digest digest(key);
  std::vector<std::byte> packed;
  for (const TensorView& view : argument.views()) {
    const std::byte* elements = view.data;
    if (!view.is_contiguous()) {
      packed.resize(view.bytes());
      pack(view, packed.data());
      elements = packed.data();
    }
    digest.add(elements, view.bytes());
  }
  return digest.value();
}

}  // namespace shim::bindings
