#include "bindings/calls/tensor_keys.hpp"

#include <cstdint>
#include <string>

#include "bindings/tensors/tensor_reader.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

void append(std::string& key, nb::handle tensors, std::string_view role) {
  if (tensors.is_none()) {
    key += '-';
    return;
  }
  Owners owners;
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

nb::bytes tensor_key(nb::handle outputs, nb::handle inputs) {
  std::string key;
  append(key, outputs, "output");
  append(key, inputs, "input");
  return nb::bytes(key.data(), key.size());
}

nb::bytes packed_elements(nb::handle tensor) {
  Owners owners;
  const TensorArgument argument = read_tensor(tensor, "input", owners);
  std::string elements(argument.tensor().bytes(), '\0');
  pack(argument.tensor(), reinterpret_cast<std::byte*>(elements.data()));
  return nb::bytes(elements.data(), elements.size());
}

}  // namespace shim::bindings
