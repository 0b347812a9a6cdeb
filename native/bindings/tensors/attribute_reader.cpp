#include "bindings/tensors/attribute_reader.hpp"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace shim::bindings {
namespace {

nb::object checked(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

descrgetfunc getter_of(nb::handle descriptor) {
  return reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(descriptor.ptr()), Py_tp_descr_get));
}

// The field of `access` that can be asked for an attribute, or None.
nb::object descriptor(nb::handle access, const char* name) {
  nb::object field = access.attr(name);
  if (!field.is_none() && getter_of(field) == nullptr) {
    PyErr_Format(PyExc_TypeError, "%s is no descriptor in the tensor's class, but %R", name, field.ptr());
    throw nb::python_error();
  }
  return field;
}

// What `object.name` is, without looking the name up in its class.
nb::object attribute(nb::handle object, const nb::object& descriptor) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
  return checked(getter_of(descriptor)(descriptor.ptr(), object.ptr(), type));
}

nb::object call(const nb::object& function, nb::handle object) {
  return checked(PyObject_CallFunctionObjArgs(function.ptr(), object.ptr(), nullptr));
}

bool is_on_host(const nb::object& device) {
  const char* name = PyUnicode_AsUTF8AndSize(device.ptr(), nullptr);
  if (name == nullptr) throw nb::python_error();
  return std::string_view(name).substr(0, 3) == "CPU";
}

}  // namespace

AttributeReader::AttributeReader(nb::handle access)
    : initializer_(descriptor(access, "initializer")),
      device_(descriptor(access, "device")),
      dtype_(descriptor(access, "dtype")),
      shape_(descriptor(access, "shape")),
      is_contiguous_(access.attr("is_contiguous")),
      data_ptr_(access.attr("data_ptr")),
      dtype_name_(access.attr("dtype_name")) {}

std::optional<TensorView> AttributeReader::read(nb::handle object, Owners& owners) {
  if (!attribute(object, initializer_).is_none() || !(device_.is_none() || is_on_host(attribute(object, device_))) ||
      !call(is_contiguous_, object).is(Py_True))
    return std::nullopt;
  TensorView view;
  view.dtype = dtype_of(attribute(object, dtype_));
  const nb::object shape = attribute(object, shape_);
  if (view.dtype == Dtype::none || !PyTuple_CheckExact(shape.ptr()) || nb::len(shape) > max_dimensions)
    return std::nullopt;
  view.dimensions = static_cast<int>(nb::len(shape));
  for (int d = 0; d < view.dimensions; ++d)
    view.shape[static_cast<std::size_t>(d)] = nb::cast<std::int64_t>(nb::handle(PyTuple_GetItem(shape.ptr(), d)));
  view.set_contiguous();
  view.data = reinterpret_cast<std::byte*>(nb::cast<std::uintptr_t>(call(data_ptr_, object)));
  if (view.data == nullptr && view.count() > 0) return std::nullopt;
  owners.push_back(nb::borrow(object));
  return view;
}

Dtype AttributeReader::dtype_of(nb::object dtype) {
  const auto found = dtypes_.find(dtype.ptr());
  if (found != dtypes_.end()) return found->second;
  const Dtype known = dtype_named(nb::cast<std::string>(dtype_name_(dtype)));
  return dtypes_.emplace(dtype.release().ptr(), known).first->second;
}

}  // namespace shim::bindings
