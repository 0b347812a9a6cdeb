#include "bindings/interpreter/interpreter.hpp"

#include <unistd.h>

#include <cstring>

#include "bindings/interpreter/outside_limited_api.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

PyObject* before_exec = nullptr;  // never released, as Python objects must not be after the interpreter has ended

bool is_main() { return PyInterpreterState_GetID(PyInterpreterState_Get()) == 0; }

// Whether what os.exec is told to run can be run: programs try one path after the other.
bool can_run(PyObject* arguments) {
  PyObject* name = nullptr;
  PyObject* const path =
      PyTuple_Check(arguments) != 0 && PyTuple_Size(arguments) > 0 ? PyTuple_GetItem(arguments, 0) : nullptr;
  if (path == nullptr || PyLong_Check(path) != 0) return true;  // a descriptor, for one
  if (PyUnicode_FSConverter(path, &name) == 0) {
    PyErr_Clear();  // os.exec says so itself
    return false;
  }
  const bool can = ::access(PyBytes_AsString(name), X_OK) == 0;
  Py_DECREF(name);
  return can;
}

// Python calls this at every audited event.
int notice_exec(const char* event, PyObject* arguments, void* /* nothing */) {
  if (std::strcmp(event, "os.exec") != 0 || before_exec == nullptr || !is_main() || !can_run(arguments)) return 0;
  PyObject* const result = PyObject_CallNoArgs(before_exec);
  if (result == nullptr) PyErr_WriteUnraisable(before_exec);
  Py_XDECREF(result);
  return 0;
}

}  // namespace

void refuse_subinterpreters() {
  if (!is_main())
    throw nb::import_error("shim's engine serves the main interpreter of a process alone: use processes for ranks");
}

void set_before_exec(nb::callable function) {
  PyObject* const earlier = before_exec;
  before_exec = function.release().ptr();
  Py_XDECREF(earlier);
  if (earlier != nullptr || PySys_AddAuditHook == nullptr) return;
  if (PySys_AddAuditHook(&notice_exec, nullptr) != 0) throw nb::python_error();
}

}  // namespace shim::bindings
