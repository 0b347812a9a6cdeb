// Reads numpy's arrays where numpy's binary interface puts what describes them, which takes a fifth of the time that
// the buffer protocol takes: that makes a string of the element type for each array.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>
#include <unordered_map>

#include "bindings/tensors/tensor_reader.hpp"

namespace shim::bindings {

// Used with the GIL. Python objects in it are never released before the interpreter ends.
class ArrayReader {
 public:
  // `in_place` is a shim.core.tensors.InPlace.
  explicit ArrayReader(nanobind::handle in_place);

  // Whether this numpy has the interface that is read here, as versions 1 and 2 have: it says of `samples` what their
  // buffers say.
  bool is_right_about(nanobind::handle samples) const;
  // What read_by_array reads. Asks that where the array's dtype is none of those known, or its elements are not a whole
  // number of them apart.
  TensorView read(nanobind::handle array, std::string_view role, Owners& owners) const;

 private:
  std::unordered_map<PyObject*, Dtype> dtypes_;  // each key is kept alive
};

}  // namespace shim::bindings
