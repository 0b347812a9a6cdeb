#include "bindings/calls/python_functions.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace shim::bindings {
namespace {

std::optional<FailureKind> kind_called(const std::string& name, bool keeps_all) {
  if (name == "PeerLostError") return FailureKind::peer_lost;
  if (name == "CollectiveTimeoutError") return FailureKind::timeout;
  if (name == "EngineError") return FailureKind::engine;
  if (keeps_all && name == "MismatchError") return FailureKind::mismatch;
  if (keeps_all && name == "OutOfMemoryError") return FailureKind::memory;
  if (keeps_all && name == "StateError") return FailureKind::state;
  return std::nullopt;
}

// Of what a call returned, which has raised where that is nothing.
nb::object checked(nb::object result, bool keeps_all) {
  if (result.is_valid()) return result;
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw Interrupted();
  throw failure_of(nb::python_error(), keeps_all);
}

}  // namespace

Failure failure_of(const nb::python_error& error, bool keeps_all) {
  const std::string name = nb::cast<std::string>(error.type().attr("__name__"));
  const std::string text = nb::str(error.value()).c_str();
  const std::optional<FailureKind> kind = kind_called(name, keeps_all);
  if (!kind) return {FailureKind::engine, name + " in a collective that had begun: " + text};
  if (*kind != FailureKind::peer_lost && *kind != FailureKind::timeout) return {*kind, text};
  return {*kind, text, nb::cast<std::vector<int>>(nb::list(error.value().attr("ranks")))};
}

nb::object called(PyObject* function, PyObject* argument, bool keeps_all) {
  return checked(nb::steal(PyObject_CallFunctionObjArgs(function, argument, nullptr)), keeps_all);
}

nb::object called_method(nb::handle object, const char* name, nb::handle arguments, bool keeps_all) {
  const nb::object method = nb::steal(PyObject_GetAttrString(object.ptr(), name));
  if (!method.is_valid()) throw failure_of(nb::python_error());
  return checked(nb::steal(PyObject_CallObject(method.ptr(), arguments.ptr())), keeps_all);
}

}  // namespace shim::bindings
