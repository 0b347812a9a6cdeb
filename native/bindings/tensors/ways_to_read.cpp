#include "bindings/tensors/ways_to_read.hpp"

#include <nanobind/stl/string.h>

#include "bindings/tensors/dlpack_view.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

// The dtype of a buffer format of the struct module: one element in native byte order.
Dtype dtype_of_format(const char* format, std::ptrdiff_t itemsize) {
  std::string_view code = format == nullptr ? "B" : format;
  if (!code.empty() && (code[0] == '@' || code[0] == '=' || code[0] == '<' || code[0] == '|')) code.remove_prefix(1);
  const auto bytes = static_cast<std::size_t>(itemsize);
  if (code == "?") return Dtype::boolean;
  if (code == "Zf" || code == "Zd") return complex_of(bytes);
  if (code.size() != 1) return Dtype::none;
  if (std::string_view("bhilqn").find(code[0]) != std::string_view::npos) return signed_of(bytes);
  if (std::string_view("BHILQN").find(code[0]) != std::string_view::npos) return unsigned_of(bytes);
  if (std::string_view("efd").find(code[0]) != std::string_view::npos) return float_of(bytes);
  return Dtype::none;
}

TensorView view_of(const Py_buffer& buffer, std::string_view role) {
  TensorView view;
  view.dtype = dtype_of_format(buffer.format, buffer.itemsize);
  if (view.dtype == Dtype::none)
    reject(std::string("{role} has elements that cannot be carried: buffer format '") + buffer.format + "'", role);
  set_dimensions(view, buffer.ndim, role);
  view.data = static_cast<std::byte*>(buffer.buf);
  view.read_only = buffer.readonly != 0;
  for (std::size_t d = 0; d < static_cast<std::size_t>(buffer.ndim); ++d) {
    view.shape[d] = buffer.shape[d];
    if (buffer.strides[d] % buffer.itemsize != 0)
      reject("{role} has strides that are not a multiple of its element size", role);
    view.strides[d] = buffer.strides[d] / buffer.itemsize;
  }
  return view;
}

TensorView view_of_buffer(nb::handle object, std::string_view role) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_FULL_RO) != 0) reject(nb::python_error(), role);
  struct Release {
    ~Release() { PyBuffer_Release(&buffer); }
    Py_buffer& buffer;
  } const release{buffer};
  return view_of(buffer, role);
}

}  // namespace

void reject(const nb::python_error& error, std::string_view role) {
  if (!error.matches(PyExc_Exception)) throw error;  // Ctrl-C, or the end of the program
  // Ours say what is wrong; of others, which may carry a backtrace, the class and the first line are quoted.
  const std::string text = nb::str(error.value()).c_str();
  if (nb::isinstance(error.value(), nb::module_::import_("shim.errors").attr("ShimError"))) reject(text, role);
  const std::string name = nb::str(error.type().attr("__name__")).c_str();
  reject("{role} cannot be read: " + name + (text.empty() ? "" : ": ") + text.substr(0, text.find('\n')), role);
}

TensorView read_by_exchange(const DLPackExchangeAPI& exchange, nb::handle object, std::string_view role,
                            Owners& owners) {
  DLTensor tensor{};
  if (exchange.dltensor_from_py_object_no_sync(object.ptr(), &tensor) != 0) reject(nb::python_error(), role);
  owners.push_back(nb::borrow(object));
  return view_of(tensor, false, role);
}

TensorView read_by_dlpack(nb::handle object, std::string_view role, Owners& owners) {
  nb::object capsule;
  try {
    try {
      capsule = object.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(1, 0));
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_TypeError)) throw;
      capsule = object.attr("__dlpack__")();  // a producer from before the versions
    }
  } catch (const nb::python_error& error) {
    reject(error, role);
  }
  owners.push_back(capsule);  // not consumed: the capsule's own destructor gives the tensor back
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    const auto* managed =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    check_version(managed->version, role);
    return view_of(managed->dl_tensor, (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0, role);
  }
  if (!PyCapsule_IsValid(capsule.ptr(), "dltensor"))
    reject(std::string("{role} must have a __dlpack__ that returns a capsule, got a ") +
               nb::str(capsule.type().attr("__qualname__")).c_str(),
           role);
  const auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  return view_of(managed->dl_tensor, false, role);
}

TensorView read_by_description(const nb::object& describe, nb::handle object, std::string_view role, Owners& owners) {
  nb::tuple description;
  try {
    description = nb::cast<nb::tuple>(describe(object));
  } catch (const nb::python_error& error) {
    reject(error, role);
  }
  TensorView view;
  view.data = reinterpret_cast<std::byte*>(nb::cast<std::uintptr_t>(description[0]));
  const auto dtype = nb::cast<std::string>(description[1]);
  view.dtype = dtype_named(dtype);
  if (view.dtype == Dtype::none) reject("{role} has elements that cannot be carried: " + dtype, role);
  const auto shape = nb::cast<nb::tuple>(description[2]);
  set_dimensions(view, static_cast<std::int64_t>(shape.size()), role);
  for (std::size_t d = 0; d < shape.size(); ++d) view.shape[d] = nb::cast<std::int64_t>(shape[d]);
  view.set_contiguous();
  if (!description[3].is_none())
    for (std::size_t d = 0; d < shape.size(); ++d) view.strides[d] = nb::cast<std::int64_t>(description[3][d]);
  view.device = device_of(nb::cast<int>(description[4][0]), nb::cast<int>(description[4][1]));
  view.read_only = nb::cast<bool>(description[5]);
  owners.push_back(nb::borrow(description[6]));
  check_memory(view, role);
  return view;
}

TensorView read_by_array(nb::handle object, std::string_view role, Owners& owners) {
  const TensorView view = view_of_buffer(object, role);
  owners.push_back(nb::borrow(object));
  return view;
}

TensorView read_by_buffer(nb::handle object, std::string_view role, Owners& owners) {
  nb::object memory = nb::steal(PyMemoryView_FromObject(object.ptr()));
  if (!memory.is_valid()) reject(nb::python_error(), role);
  const TensorView view = view_of_buffer(memory, role);
  owners.push_back(std::move(memory));
  return view;
}

}  // namespace shim::bindings
