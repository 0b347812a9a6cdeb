#include "bindings/tensors/numpy_array.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>

#include "bindings/tensors/ways_to_read.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

// The beginning of numpy's PyArrayObject, declared here to build without numpy.
struct Array {
  PyObject head;
  std::byte* data;
  int dimensions;
  Py_ssize_t* shape;
  Py_ssize_t* strides;  // bytes
  PyObject* base;
  PyObject* dtype;
  unsigned flags;
};
constexpr unsigned writeable = 0x400;
constexpr unsigned warns_when_written = 0x80000000;  // as what np.broadcast_arrays makes: its buffers are read-only

const Array& fields_of(nb::handle array) { return *reinterpret_cast<const Array*>(array.ptr()); }

// Whether all steps from element to element are a whole number of them.
bool has_whole_steps(const Array& array, Dtype dtype) {
  Py_ssize_t bits = 0;
  for (int d = 0; d < array.dimensions; ++d) bits |= array.strides[d];
  return (static_cast<std::size_t>(bits) & (bytes_of(dtype) - 1)) == 0;  // a power of two
}

TensorView view_of(const Array& array, Dtype dtype, std::string_view role) {
  TensorView view;
  view.dtype = dtype;
  set_dimensions(view, array.dimensions, role);
  view.data = array.data;
  view.read_only = (array.flags & (writeable | warns_when_written)) != writeable;
  for (std::size_t d = 0; d < static_cast<std::size_t>(array.dimensions); ++d) {
    view.shape[d] = array.shape[d];
    view.strides[d] = array.strides[d] / static_cast<Py_ssize_t>(bytes_of(dtype));
  }
  return view;
}

bool are_same(const TensorView& a, const TensorView& b) {
  const auto n = static_cast<std::size_t>(a.dimensions);
  return a.data == b.data && a.dtype == b.dtype && a.dimensions == b.dimensions && a.read_only == b.read_only &&
         std::equal(a.shape.begin(), a.shape.begin() + n, b.shape.begin()) &&
         std::equal(a.strides.begin(), a.strides.begin() + n, b.strides.begin());
}

}  // namespace

ArrayReader::ArrayReader(nb::handle in_place) {
  for (nb::handle dtype : in_place.attr("dtypes"))
    dtypes_.emplace(dtype.inc_ref().ptr(), dtype_named(nb::cast<std::string>(dtype.attr("name"))));
}

bool ArrayReader::is_right_about(nb::handle samples) const {
  for (nb::handle sample : samples) {
    if (nb::cast<std::size_t>(sample.type().attr("__basicsize__")) < sizeof(Array)) return false;
    Owners owners;
    const TensorView said = read_by_array(sample, "sample", owners);
    const Array& array = fields_of(sample);
    const auto dtype = dtypes_.find(array.dtype);
    if (dtype == dtypes_.end() || array.dimensions != said.dimensions) return false;
    if (!are_same(view_of(array, dtype->second, "sample"), said)) return false;
  }
  return true;
}

TensorView ArrayReader::read(nb::handle array, std::string_view role, Owners& owners) const {
  const Array& fields = fields_of(array);
  const auto dtype = dtypes_.find(fields.dtype);
  if (dtype == dtypes_.end() || !has_whole_steps(fields, dtype->second)) return read_by_array(array, role, owners);
  owners.push_back(nb::borrow(array));
  return view_of(fields, dtype->second, role);
}

}  // namespace shim::bindings
