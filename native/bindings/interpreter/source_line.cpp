#include "bindings/interpreter/source_line.hpp"

#include <nanobind/nanobind.h>

#include <atomic>
#include <string_view>

#include "bindings/interpreter/gil_at_end.hpp"
#include "bindings/interpreter/program_threads.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

constexpr std::size_t longest_path = 120;  // bytes; of a longer one the end is told

std::atomic<unsigned long> program_thread{0};

std::string text_of(nb::handle object) {
  Py_ssize_t bytes = 0;
  const char* text = PyUnicode_Check(object.ptr()) ? PyUnicode_AsUTF8AndSize(object.ptr(), &bytes) : nullptr;
  PyErr_Clear();  // as of a name that is no UTF-8
  return text == nullptr ? "?" : std::string(text, static_cast<std::size_t>(bytes));
}

// Whether a module is part of what stands between the program and the engine. torch is: its own classes call the
// engine.
bool is_between(std::string_view module) {
  if (module == "shim" || module == "torch") return true;
  for (const std::string_view package :
       {"shim.core", "shim.frontends", "shim.substitution", "shim.testing.expected_errors", "torch."})
    if (module.substr(0, package.size()) == package) return true;
  return false;
}

std::string end_of(const std::string& path) {
  if (path.size() <= longest_path) return path;
  const std::size_t slash = path.find('/', path.size() - longest_path);
  return slash == std::string::npos ? path.substr(path.rfind('/') + 1) : "..." + path.substr(slash);
}

std::string place_at(nb::handle frame) {
  const nb::object code = frame.attr("f_code");
  const std::string function = text_of(code.attr("co_name"));
  return end_of(text_of(code.attr("co_filename"))) + ":" + std::to_string(nb::cast<int>(frame.attr("f_lineno"))) +
         (function == "<module>" ? "" : " in " + function);
}

std::string place_of(nb::object frame) {
  while (!frame.is_none()) {
    const nb::object globals = frame.attr("f_globals");
    const nb::handle name = PyDict_GetItemString(globals.ptr(), "__name__");
    if (!name.is_valid() || !is_between(text_of(name))) return place_at(frame);
    frame = frame.attr("f_back");
  }
  return {};
}

std::string place_in_frames_of_all_threads() {
  const nb::object frames = nb::module_::import_("sys").attr("_current_frames")();
  const nb::object frame = frames.attr("get")(program_thread.load());
  return place_of(frame);
}

}  // namespace

std::string source_line() {
  if (PyErr_Occurred() != nullptr) return {};
  try {
    PyFrameObject* frame = PyEval_GetFrame();
    return frame == nullptr ? "" : place_of(nb::borrow(reinterpret_cast<PyObject*>(frame)));
  } catch (const std::exception&) {  // as of a frame that has no line
    return {};
  }
}

std::string source_line_of_program() {
  if (program_thread.load() == 0 || !Py_IsInitialized()) return {};
  PyGILState_STATE state{};
  set_place_asking(true);
  take_or_stay([&state] { state = PyGILState_Ensure(); });
  std::string place;
  try {
    place = place_in_frames_of_all_threads();
  } catch (const std::exception&) {
    // It is told that there is no answer.
  }
  PyGILState_Release(state);
  set_place_asking(false);
  return place;
}

void this_thread_is_the_program() { program_thread.store(PyThread_get_thread_ident()); }

}  // namespace shim::bindings
