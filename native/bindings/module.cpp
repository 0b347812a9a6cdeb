// The Python module shim._native: groups and works. Arguments are checked here, with the GIL; engines know no Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings/calls/call_records.hpp"
#include "bindings/calls/requests.hpp"
#include "bindings/calls/tensor_keys.hpp"
#include "bindings/calls/work.hpp"
#include "bindings/errors.hpp"
#include "bindings/interpreter/interpreter.hpp"
#include "bindings/process.hpp"
#include "bindings/py_group.hpp"
#include "bindings/shared_tensors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace shim::bindings {
namespace {

nb::object exception_or_none(const Work& work) {
  const std::optional<Failure> failure = work.call->task->failure();
  return failure ? exception_of(*failure) : nb::none();
}

}  // namespace

NB_MODULE(_native, module) {
  refuse_subinterpreters();
  module.doc() = "The native engine for ranks on one host.";
  translate_failures();
#ifdef NDEBUG
  // What is alive at the end need not be an error of ours: a thread that waits holds its work, and so does the
  // traceback of a failed work in a future of torch's, where Python cannot collect it.
  nb::set_leak_warnings(false);
#endif
  module.def("set_reader_chooser", &set_reader_chooser, "chooser"_a,
             "Set the function that says how tensors of a type are read: shim.core.tensors.reader_for.");
  module.def("tensor_key", &tensor_key, "outputs"_a.none(), "inputs"_a.none(), "devices"_a = false,
             "Bytes that are the same for tensors, or lists of them, of the same dtypes and shapes; with *devices*, "
             "also of tensors on these.");
  module.def(
      "call_was_begun", [] { return call_was_begun; },
      "Tell whether the last collective of this thread had begun. If so, its arguments are not what raised since.");
  module.def("elements_digest", &elements_digest, "tensors"_a, "key"_a,
             "64 bits that stand, under *key*, for the elements of tensors, one after the other, in row-major order.");
  module.def("has_repeated", &has_repeated, "objects"_a, "Whether any object is in the list more than once.");

  module.attr("protocol_version") = protocol_version;
  define_process(module);
  define_shared_tensors(module);
  define_requests(module);
  define_call_records(module);

  nb::class_<Work>(module, "Work", "A prepared call; see shim.core.work.EngineWork.")
      .def("start", &start)
      .def("wait", &wait, "timeout"_a = -1.0)
      .def("hold_memory", [](Work& work) { work.call->owners.hold_memory(); })
      .def("read_before_others_write", &read_before_others_write, "others"_a)
      .def("is_completed", &is_completed)
      .def("exception", &exception_or_none)
      .def("source_rank", [](const Work& work) { return work.call->task->source_rank(); });

  define_group(module);
  define_carried_group(module);
}

}  // namespace shim::bindings
