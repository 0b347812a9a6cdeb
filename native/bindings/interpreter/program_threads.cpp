#include "bindings/interpreter/program_threads.hpp"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <vector>

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

}  // namespace

bool has_gil() { return PyThreadState_GetDict() != nullptr; }

bool is_only_thread() {
#ifdef Py_GIL_DISABLED
  return false;  // threads come and go meanwhile
#else
  const unsigned long mine = PyThread_get_thread_ident();
  for (nb::handle key : nb::module_::import_("sys").attr("_current_frames")()) {
    const auto thread = nb::cast<unsigned long>(key);
    if (thread != mine && !is_silent(thread)) return false;
  }
  return true;
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
