#include "bindings/interpreter/program_threads.hpp"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <vector>

#include "bindings/interpreter/outside_limited_api.hpp"
#include "platform/process.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

// A thread, or none. A forked child has none of its parent's, and may give their numbers to others.
struct Silent {
  unsigned long thread = 0;
  std::uint64_t process = 0;

  bool is(unsigned long other) const { return thread == other && process == process_generation(); }
};

Silent this_thread() { return {PyThread_get_thread_ident(), process_generation()}; }

// Guarded by the GIL, and never destroyed.
std::vector<Silent>& silent_threads() {
  static auto* threads = new std::vector<Silent>();
  return *threads;
}
std::atomic<unsigned long> place_asking{0};
std::atomic<std::uint64_t> place_asking_in{0};

bool is_silent(unsigned long thread) {
  if (Silent{place_asking.load(), place_asking_in.load()}.is(thread)) return true;
  const auto& threads = silent_threads();
  return std::any_of(threads.begin(), threads.end(), [thread](const Silent& one) { return one.is(thread); });
}

// Whether Python knows of no more threads than this one and the silent ones. Threads of C++ count too, while Python
// keeps a state of theirs.
bool has_no_other_state() {
  if (PyInterpreterState_ThreadHead == nullptr || PyThreadState_Next == nullptr) return false;
  const auto& threads = silent_threads();
  auto known = 1 + std::count_if(threads.begin(), threads.end(),
                                 [](const Silent& one) { return one.process == process_generation(); });
  if (place_asking.load() != 0 && place_asking_in.load() == process_generation()) ++known;
  for (PyThreadState* one = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); one != nullptr;
       one = PyThreadState_Next(one))
    --known;
  return known >= 0;
}

// Whether no thread but this one and the silent ones runs Python code. The one that asks for a place may be counted
// above before Python has a state of it.
bool runs_nowhere_else() {
  const unsigned long mine = PyThread_get_thread_ident();
  try {
    for (nb::handle key : nb::module_::import_("sys").attr("_current_frames")()) {
      const auto thread = nb::cast<unsigned long>(key);
      if (thread != mine && !is_silent(thread)) return false;
    }
  } catch (const nb::python_error&) {  // as where an audit hook of the program refuses it
    return false;
  }
  return true;
}

}  // namespace

bool has_gil() {  // Python before 3.12 has one current thread state for all threads
  return PyGILState_Check != nullptr ? PyGILState_Check() != 0 : PyThreadState_GetDict() != nullptr;
}

bool is_only_thread() {
#ifdef Py_GIL_DISABLED
  return false;  // threads come and go meanwhile
#else
  return has_no_other_state() && runs_nowhere_else();
#endif
}

bool handles_signals() {
  static PyObject* const module = PyImport_ImportModule("_signal");  // kept for the process, as Python keeps it
  static PyObject* const ends_by_interrupt = PyObject_GetAttrString(module, "default_int_handler");
  for (int number = 1; number < NSIG; ++number) {
    PyObject* handler = PyObject_CallMethod(module, "getsignal", "i", number);
    if (handler == nullptr) PyErr_Clear();  // there is no such signal
    const bool is_own = handler != nullptr && handler != ends_by_interrupt && PyCallable_Check(handler) != 0;
    Py_XDECREF(handler);
    if (is_own) return true;
  }
  return false;
}

void set_makes_no_calls(bool makes_none) {
  auto& threads = silent_threads();
  const Silent mine = this_thread();
  if (makes_none)
    threads.push_back(mine);
  else
    std::erase_if(threads, [mine](const Silent& one) { return one.is(mine.thread); });
}

void set_place_asking(bool is_asking) {
  const Silent mine = is_asking ? this_thread() : Silent();
  place_asking_in.store(mine.process);
  place_asking.store(mine.thread);
}

}  // namespace shim::bindings
