// Reads tensors by the attributes that their class gives them, for frameworks without DLPack's C functions.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string_view>
#include <unordered_map>

#include "bindings/tensors/tensor_reader.hpp"

namespace shim::bindings {

// Reads dense tensors in host memory that are initialised and contiguous; a call takes under a microsecond. Used with
// the GIL. Python objects in it are never released before the interpreter ends.
class AttributeReader {
 public:
  // `access` is a shim.core.tensors.Access.
  explicit AttributeReader(nanobind::handle access);

  // Nothing for a tensor that has to be described instead.
  std::optional<TensorView> read(nanobind::handle object, Owners& owners);

 private:
  Dtype dtype_of(nanobind::object dtype);

  // Descriptors, of a tensor's class; no device where there is none but the host.
  nanobind::object initializer_;
  nanobind::object device_;
  nanobind::object dtype_;
  nanobind::object shape_;
  // Functions of a tensor.
  nanobind::object is_contiguous_;
  nanobind::object data_ptr_;
  nanobind::object dtype_name_;                  // of a dtype
  std::unordered_map<PyObject*, Dtype> dtypes_;  // each key is kept alive
};

}  // namespace shim::bindings
