#include "bindings/tensors/tensor_reader.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>

#include "bindings/tensors/attribute_reader.hpp"
#include "bindings/tensors/numpy_array.hpp"
#include "bindings/tensors/tensor_bit.hpp"
#include "bindings/tensors/view_checks.hpp"
#include "bindings/tensors/ways_to_read.hpp"
#include "platform/failure.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

struct Guard {
  nb::object method;    // of the type, called with the tensor; it must answer False
  std::string message;  // for when it does not
  bool only_complex;    // not asked of real elements
  // Where it is not set, the method need not be asked.
  std::optional<TensorBit> bit;
};

enum class Way { exchange, in_place, array, buffer, dlpack, attributes, describe };

// How the tensors of one type are read; see shim.core.tensors.Reader.
struct Reader {
  Way way;
  const DLPackExchangeAPI* exchange = nullptr;
  std::shared_ptr<AttributeReader> attributes;
  nb::object describe;  // or None
  std::vector<Guard> guards;
  std::shared_ptr<ArrayReader> arrays;
  const TensorVersion* version = nullptr;
  const TensorMemory* memory = nullptr;
  nb::object stream;  // or None
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

Way way_named(const std::string& name) {
  if (name == "exchange") return Way::exchange;
  if (name == "array") return Way::array;
  if (name == "buffer") return Way::buffer;
  if (name == "attributes") return Way::attributes;
  return name == "describe" ? Way::describe : Way::dlpack;
}

// Null when the table is of another major version, or lacks what is needed.
const DLPackExchangeAPI* exchange_of(nb::handle capsule) {
  const auto* api = static_cast<const DLPackExchangeAPI*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (api == nullptr) PyErr_Clear();
  const bool usable = api != nullptr && api->header.version.major == DLPACK_MAJOR_VERSION &&
                      api->dltensor_from_py_object_no_sync != nullptr;
  return usable ? api : nullptr;
}

Reader make_reader(nb::handle type) {
  if (!readers().chooser.is_valid())
    throw Failure(FailureKind::state, "no engine was loaded, with which tensors are read");
  const nb::object answer = readers().chooser(type);
  Reader reader{
      way_named(nb::cast<std::string>(answer.attr("way"))), nullptr, nullptr, answer.attr("describe"), {}, nullptr};
  if (reader.way == Way::attributes) reader.attributes = std::make_shared<AttributeReader>(answer.attr("access"));
  if (const nb::object in_place = answer.attr("in_place"); !in_place.is_none()) {
    reader.arrays = std::make_shared<ArrayReader>(in_place);
    if (reader.arrays->is_right_about(in_place.attr("samples"))) reader.way = Way::in_place;
  }
  // Also of tensors that are read in another way: it tells the stream of those on devices.
  if (const nb::object exchange = answer.attr("exchange"); !exchange.is_none()) reader.exchange = exchange_of(exchange);
  if (reader.way == Way::exchange && reader.exchange == nullptr) reader.way = Way::dlpack;
  if (const nb::object versions = answer.attr("versions"); !versions.is_none())
    reader.version = &TensorVersion::of(versions);
  if (const nb::object memory = answer.attr("memory"); !memory.is_none()) reader.memory = &TensorMemory::of(memory);
  reader.stream = answer.attr("stream");
  for (nb::handle guard : answer.attr("guards")) {
    nb::object method = type.attr(nb::handle(guard[0]));
    reader.guards.push_back(
        {method, nb::cast<std::string>(guard[1]), nb::cast<bool>(guard[2]), TensorBit::find(guard[3])});
  }
  return reader;
}

const Reader& reader_of(nb::handle object, std::string_view role) {
  PyTypeObject* type = Py_TYPE(object.ptr());
  auto& known = readers().by_type;
  const auto found = known.find(type);
  if (found != known.end()) return found->second;
  try {
    Reader reader = make_reader(reinterpret_cast<PyObject*>(type));
    Py_INCREF(reinterpret_cast<PyObject*>(type));
    return known.emplace(type, std::move(reader)).first->second;
  } catch (const nb::python_error& error) {
    reject(error, role);
  }
}

std::optional<TensorView> read_by_attributes(AttributeReader& reader, nb::handle object, std::string_view role,
                                             Owners& owners) {
  try {
    return reader.read(object, owners);
  } catch (const nb::python_error& error) {
    reject(error, role);
  }
}

TensorView read_as(const Reader& reader, nb::handle object, std::string_view role, Owners& owners) {
  switch (reader.way) {
    case Way::exchange:
      return read_by_exchange(*reader.exchange, object, role, owners);
    case Way::in_place:
      return reader.arrays->read(object, role, owners);
    case Way::array:
      return read_by_array(object, role, owners);
    case Way::buffer:
      return read_by_buffer(object, role, owners);
    case Way::attributes:
      if (auto view = read_by_attributes(*reader.attributes, object, role, owners)) return *view;
      [[fallthrough]];
    case Way::describe:
      return read_by_description(reader.describe, object, role, owners);
    case Way::dlpack:
      break;
  }
  return read_by_dlpack(object, role, owners);
}

TensorView read_or_describe(const Reader& reader, nb::handle object, std::string_view role, Owners& owners) {
  if (reader.way == Way::describe || reader.way == Way::attributes || reader.describe.is_none())
    return read_as(reader, object, role, owners);
  try {
    return read_as(reader, object, role, owners);
  } catch (const Failure&) {
    return read_by_description(reader.describe, object, role, owners);  // it reads more, or says better what is wrong
  }
}

TensorView view_of(nb::handle object, std::string_view role, Owners& owners) {
  const Reader& reader = reader_of(object, role);
  const TensorView view = read_or_describe(reader, object, role, owners);
  if (!owners.may_be_on_devices()) check_in_host_memory(view, role);
  if (reader.version != nullptr || reader.memory != nullptr) {
    if (reader.way == Way::dlpack) owners.push_back(nb::borrow(object));  // beside its capsule
    owners.set_tracking_of_last(reader.version, reader.memory);
  }
  for (const Guard& guard : reader.guards) {
    if (guard.only_complex && !is_complex(view.dtype)) continue;
    if (guard.bit && !guard.bit->is_set(object)) continue;
    const nb::object answer = nb::steal(PyObject_CallFunctionObjArgs(guard.method.ptr(), object.ptr(), nullptr));
    if (!answer.is_valid()) reject(nb::python_error(), role);
    if (PyObject_IsTrue(answer.ptr()) == 1) reject(guard.message, role);
  }
  return view;
}

std::string of_item(std::string text, std::size_t place, std::string_view role) {
  const std::string name = "{" + std::string(role) + "}";
  if (const std::size_t at = text.find(name); at != std::string::npos)
    text.insert(at + name.size(), "[" + std::to_string(place) + "]");
  return text;
}

// Errors name the item.
TensorView view_of_item(nb::handle item, std::size_t place, std::string_view role, Owners& owners) {
  try {
    return view_of(item, role, owners);
  } catch (const DeviceFailure& failure) {
    throw DeviceFailure(of_item(failure.what(), place, role), failure.device);
  } catch (const Failure& failure) {
    throw Failure(failure.kind, of_item(failure.what(), place, role));
  }
}

bool is_sequence(nb::handle object) { return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()); }

}  // namespace

void set_reader_chooser(nb::callable chooser) { readers().chooser = std::move(chooser); }

TensorArgument read_tensor(nb::handle object, std::string_view role, Owners& owners) {
  return {role, view_of(object, role, owners), {}, false};
}

std::uintptr_t current_stream(nb::handle object, Device device) {
  if (PyCapsule_CheckExact(object.ptr())) return 0;  // of a producer that has nothing but __dlpack__
  const Reader& reader = reader_of(object, "tensor");
  if (!reader.stream.is_none()) return nb::cast<std::uintptr_t>(reader.stream());
  if (reader.exchange == nullptr || reader.exchange->current_work_stream == nullptr) return 0;
  void* stream = nullptr;
  const auto type = static_cast<DLDeviceType>(device.type);
  if (reader.exchange->current_work_stream(type, device.number, &stream) != 0) throw nb::python_error();
  return reinterpret_cast<std::uintptr_t>(stream);
}

TensorArgument read_whole(nb::handle object, std::string_view role, Owners& owners) {
  if (is_sequence(object))
    reject(std::string("{role} must be one tensor, got a ") + nb::str(object.type().attr("__qualname__")).c_str(),
           role);
  return read_tensor(object, role, owners);
}

TensorArgument read_tensors(nb::handle object, std::string_view role, Owners& owners) {
  if (!is_sequence(object)) return read_tensor(object, role, owners);
  TensorArgument argument{role, std::nullopt, {}, true};
  argument.list.reserve(static_cast<std::size_t>(Py_SIZE(object.ptr())));
  try {
    for (nb::handle item : object) argument.list.push_back(view_of_item(item, argument.list.size(), role, owners));
  } catch (const nb::python_error& error) {  // a subclass of list iterates as it likes
    reject(error, role);
  }
  return argument;
}

bool has_repeated(const nb::typed<nb::list, nb::object>& objects) {
  std::vector<PyObject*> sorted;
  sorted.reserve(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) sorted.push_back(objects[i].ptr());
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

SplitArgument read_splits(nb::handle object, std::string_view role) {
  SplitArgument argument{role, std::nullopt};
  if (object.is_none()) return argument;
  argument.rows.emplace();
  try {
    for (nb::handle item : object) {
      const nb::object number = nb::steal(PyNumber_Index(item.ptr()));
      if (!number.is_valid()) throw nb::python_error();
      const long long rows = PyLong_AsLongLong(number.ptr());
      if (rows == -1 && PyErr_Occurred()) throw nb::python_error();
      argument.rows->push_back(rows);
    }
  } catch (const nb::python_error& error) {
    throw Failure(FailureKind::argument,
                  "{" + std::string(role) + "} must be a sequence of integers, got " + nb::repr(object).c_str());
  }
  return argument;
}

}  // namespace shim::bindings
