// Functions of Python that the engine calls, from threads that may not hold the interpreter's lock.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>

#include "bindings/interpreter/gil_at_end.hpp"
#include "platform/failure.hpp"

namespace shim::bindings {

// Of threads that the engine has call functions of Python. At the end of the interpreter they must be out of them, as
// nothing can hold such a thread there: see take_or_stay.
inline std::atomic<int> threads_in_functions{0};

// Holds the interpreter's lock while it is there, whether or not the thread held it before.
struct PythonLock {
  PythonLock() {
    take_or_stay([this] { state = PyGILState_Ensure(); });
    ++threads_in_functions;
  }
  ~PythonLock() {
    --threads_in_functions;
    PyGILState_Release(state);
  }
  PythonLock(const PythonLock&) = delete;
  PyGILState_STATE state{};
};

// Of an exception that a function of Python raised. What tells of this rank alone becomes Failure(engine), as the
// others are in the same call, but for mismatch and memory where *keeps_all*: there all ranks have agreed on the error.
Failure failure_of(const nanobind::python_error& error, bool keeps_all = false);

// Returns what the function returned. To be called with the lock. Throws what it raised, as failure_of has it;
// Interrupted for Ctrl-C, which stays the thread's error, for who called the engine.
nanobind::object called(PyObject* function, PyObject* argument, bool keeps_all);
nanobind::object called_method(nanobind::handle object, const char* name, nanobind::handle arguments, bool keeps_all);

}  // namespace shim::bindings
