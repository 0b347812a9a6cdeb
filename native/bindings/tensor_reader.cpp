#include "tensor_reader.hpp"

#include <dlpack/dlpack.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "../failure.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

struct Guard {
  nb::object method;    // a name; the method must answer False
  std::string message;  // for when it does not
};

// How the tensors of one type are read.
struct Reader {
  std::string way;
  const DLPackExchangeAPI* exchange = nullptr;
  nb::object describe;
  std::vector<Guard> guards;
};

// Never destroyed: Python objects must not be released after the interpreter has ended.
struct Readers {
  nb::object chooser;
  std::unordered_map<PyTypeObject*, Reader> by_type;  // each type is kept alive
};
Readers& readers() {
  static auto* instance = new Readers();
  return *instance;
}

std::string with_role(std::string text, std::string_view role) {
  const std::string braced = "{" + std::string(role) + "}";
  for (std::size_t at = text.find("{role}"); at != std::string::npos; at = text.find("{role}", at + 1))
    text.replace(at, 6, braced);
  return text;
}

[[noreturn]] void reject(const std::string& message, std::string_view role) {
  throw Failure(FailureKind::tensor, with_role(message, role));
}

// A Python error while a tensor was read: ours say what is wrong, others are quoted.
[[noreturn]] void reject(const nb::python_error& error, std::string_view role) {
  const std::string text = nb::str(error.value()).c_str();
  if (nb::isinstance(error.value(), nb::module_::import_("shim.errors").attr("ShimError"))) reject(text, role);
  reject("{role} cannot be read: " + text, role);
}

Dtype dtype_of(const DLDataType& type) {
  if (type.lanes != 1) return Dtype::none;
  const auto sized = [&](const char* prefix) { return dtype_named(prefix + std::to_string(type.bits)); };
  switch (type.code) {
    case kDLBool:
      return type.bits == 8 ? Dtype::boolean : Dtype::none;
    case kDLInt:
      return sized("int");
    case kDLUInt:
      return sized("uint");
    case kDLFloat:
      return sized("float");
    case kDLComplex:
      return sized("complex");
    case kDLBfloat:
      return sized("bfloat");
    case kDLFloat8_e3m4:
      return Dtype::float8_e3m4;
    case kDLFloat8_e4m3:
      return Dtype::float8_e4m3;
    case kDLFloat8_e4m3b11fnuz:
      return Dtype::float8_e4m3b11fnuz;
    case kDLFloat8_e4m3fn:
      return Dtype::float8_e4m3fn;
    case kDLFloat8_e4m3fnuz:
      return Dtype::float8_e4m3fnuz;
    case kDLFloat8_e5m2:
      return Dtype::float8_e5m2;
    case kDLFloat8_e5m2fnuz:
      return Dtype::float8_e5m2fnuz;
    case kDLFloat8_e8m0fnu:
      return Dtype::float8_e8m0fnu;
    default:
      return Dtype::none;
  }
}

void check_device(int device_type, std::string_view role) {
  if (device_type == kDLCPU || device_type == kDLCUDAHost || device_type == kDLROCMHost) return;
  reject("{role} must be in host memory, got a tensor on a device of DLPack type " + std::to_string(device_type) +
             "\nThe engine shared_memory reaches host memory alone: move it with .cpu().",
         role);
}

void set_contiguous_strides(TensorView& view) {
  std::int64_t stride = 1;
  for (int d = view.dimensions - 1; d >= 0; --d) {
    view.strides[static_cast<std::size_t>(d)] = stride;
    stride *= view.shape[static_cast<std::size_t>(d)];
  }
}

void set_dimensions(TensorView& view, std::int64_t dimensions, std::string_view role) {
  if (dimensions > static_cast<std::int64_t>(max_dimensions))
    reject("{role} must have at most " + std::to_string(max_dimensions) + " dimensions, got " + std::to_string(dimensions) +
               "\nReshape it.",
           role);
  view.dimensions = static_cast<int>(dimensions);
}

void check_memory(const TensorView& view, std::string_view role) {
  if (view.data == nullptr && view.count() > 0)
    reject("{role} has no memory: it is not initialised, or holds its elements elsewhere", role);
}

TensorView view_of(const DLTensor& tensor, bool read_only, std::string_view role) {
  check_device(tensor.device.device_type, role);
  TensorView view;
  view.dtype = dtype_of(tensor.dtype);
  if (view.dtype == Dtype::none)
    reject("{role} has elements that cannot be carried: DLPack type code " + std::to_string(tensor.dtype.code) + ", " +
               std::to_string(tensor.dtype.bits) + " bits, " + std::to_string(tensor.dtype.lanes) + " lanes",
           role);
  set_dimensions(view, tensor.ndim, role);
  view.read_only = read_only;
  std::copy_n(tensor.shape, tensor.ndim, view.shape.begin());
  if (tensor.strides != nullptr)
    std::copy_n(tensor.strides, tensor.ndim, view.strides.begin());
  else
    set_contiguous_strides(view);
  if (tensor.data != nullptr) view.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  check_memory(view, role);
  return view;
}

TensorView read_by_exchange(const Reader& reader, nb::handle object, std::string_view role, Owners& owners) {
  DLTensor tensor{};
  if (reader.exchange->dltensor_from_py_object_no_sync(object.ptr(), &tensor) != 0) reject(nb::python_error(), role);
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
    const auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    return view_of(managed->dl_tensor, (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0, role);
  }
  const auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (managed == nullptr) reject(nb::python_error(), role);
  return view_of(managed->dl_tensor, false, role);
}

TensorView read_by_description(const Reader& reader, nb::handle object, std::string_view role, Owners& owners) {
  nb::tuple description;
  try {
    description = nb::cast<nb::tuple>(reader.describe(object));
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
  set_contiguous_strides(view);
  if (!description[3].is_none())
    for (std::size_t d = 0; d < shape.size(); ++d) view.strides[d] = nb::cast<std::int64_t>(description[3][d]);
  check_device(nb::cast<int>(description[4]), role);
  view.read_only = nb::cast<bool>(description[5]);
  owners.push_back(nb::borrow(description[6]));
  check_memory(view, role);
  return view;
}

// The dtype of a buffer format of the struct module: one element in native byte order.
Dtype dtype_of_format(const char* format, std::ptrdiff_t itemsize) {
  std::string_view code = format == nullptr ? "B" : format;
  if (!code.empty() && (code[0] == '@' || code[0] == '=' || code[0] == '<' || code[0] == '|')) code.remove_prefix(1);
  const auto sized = [&](const char* prefix) { return dtype_named(prefix + std::to_string(itemsize * 8)); };
  if (code == "?") return Dtype::boolean;
  if (code == "Zf" || code == "Zd") return sized("complex");
  if (code.size() != 1) return Dtype::none;
  if (std::string_view("bhilqn").find(code[0]) != std::string_view::npos) return sized("int");
  if (std::string_view("BHILQN").find(code[0]) != std::string_view::npos) return sized("uint");
  if (std::string_view("efd").find(code[0]) != std::string_view::npos) return sized("float");
  return Dtype::none;
}

TensorView read_by_buffer(const Reader& reader, nb::handle object, std::string_view role, Owners& owners) {
  nb::object memory = nb::steal(PyMemoryView_FromObject(object.ptr()));
  if (!memory.is_valid()) {
    const nb::python_error error;
    if (reader.describe.is_valid() && !reader.describe.is_none()) return read_by_description(reader, object, role, owners);
    reject(error, role);
  }
  const Py_buffer& buffer = *PyMemoryView_GET_BUFFER(memory.ptr());
  TensorView view;
  view.dtype = dtype_of_format(buffer.format, buffer.itemsize);
  if (view.dtype == Dtype::none)
    reject(std::string("{role} has elements that cannot be carried: buffer format '") + buffer.format + "'", role);
  set_dimensions(view, buffer.ndim, role);
  view.data = static_cast<std::byte*>(buffer.buf);
  view.read_only = buffer.readonly != 0;
  for (std::size_t d = 0; d < static_cast<std::size_t>(buffer.ndim); ++d) {
    view.shape[d] = buffer.shape[d];
    if (buffer.strides[d] % buffer.itemsize != 0) reject("{role} has elements that are not a whole number of items apart", role);
    view.strides[d] = buffer.strides[d] / buffer.itemsize;
  }
  owners.push_back(std::move(memory));
  return view;
}

Reader make_reader(nb::handle type, std::string_view role) {
  nb::object answer;
  try {
    answer = readers().chooser(type);
  } catch (const nb::python_error& error) {
    reject(error, role);
  }
  Reader reader;
  reader.way = nb::cast<std::string>(answer.attr("way"));
  reader.describe = answer.attr("source");
  for (nb::handle guard : answer.attr("guards")) {
    nb::object method = guard[0];
    reader.guards.push_back({method, nb::cast<std::string>(guard[1])});
  }
  if (reader.way == "exchange") {
    const auto* api =
        static_cast<const DLPackExchangeAPI*>(PyCapsule_GetPointer(reader.describe.ptr(), "dlpack_exchange_api"));
    if (api == nullptr) PyErr_Clear();
    const bool usable = api != nullptr && api->header.version.major == DLPACK_MAJOR_VERSION &&
                        api->dltensor_from_py_object_no_sync != nullptr;
    if (usable)
      reader.exchange = api;
    else
      reader.way = "dlpack";
  }
  return reader;
}

const Reader& reader_of(nb::handle object, std::string_view role) {
  PyTypeObject* type = Py_TYPE(object.ptr());
  auto& known = readers().by_type;
  const auto found = known.find(type);
  if (found != known.end()) return found->second;
  Reader reader = make_reader(reinterpret_cast<PyObject*>(type), role);
  Py_INCREF(type);
  return known.emplace(type, std::move(reader)).first->second;
}

TensorView view_of(nb::handle object, std::string_view role, Owners& owners) {
  const Reader& reader = reader_of(object, role);
  for (const Guard& guard : reader.guards) {
    const nb::object answer = nb::steal(PyObject_CallMethodNoArgs(object.ptr(), guard.method.ptr()));
    if (!answer.is_valid()) reject(nb::python_error(), role);
    if (PyObject_IsTrue(answer.ptr()) == 1) reject(guard.message, role);
  }
  if (reader.exchange != nullptr) return read_by_exchange(reader, object, role, owners);
  if (reader.way == "buffer") return read_by_buffer(reader, object, role, owners);
  if (reader.way == "describe") return read_by_description(reader, object, role, owners);
  return read_by_dlpack(object, role, owners);
}

}  // namespace

void set_reader_chooser(nb::callable chooser) { readers().chooser = std::move(chooser); }

TensorArgument read_tensor(nb::handle object, std::string_view role, Owners& owners) {
  TensorArgument argument{role, {}, false};
  argument.views.push_back(view_of(object, role, owners));
  return argument;
}

TensorArgument read_tensors(nb::handle object, std::string_view role, Owners& owners) {
  if (!PyList_Check(object.ptr()) && !PyTuple_Check(object.ptr())) return read_tensor(object, role, owners);
  TensorArgument argument{role, {}, true};
  for (nb::handle item : object) argument.views.push_back(view_of(item, role, owners));
  return argument;
}

SplitArgument read_splits(nb::handle object, std::string_view role) {
  SplitArgument argument{role, std::nullopt};
  if (object.is_none()) return argument;
  argument.rows.emplace();
  try {
    for (nb::handle item : object) {
      const nb::object number = nb::steal(PyNumber_Index(item.ptr()));
      if (!number.is_valid()) throw nb::python_error();
      argument.rows->push_back(nb::cast<std::int64_t>(number));
    }
  } catch (const nb::python_error& error) {
    throw Failure(FailureKind::argument, "{" + std::string(role) + "} must be a sequence of integers, got " +
                                             nb::repr(object).c_str());
  }
  return argument;
}

}  // namespace shim::bindings
