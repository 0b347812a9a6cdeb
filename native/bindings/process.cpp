#include "process.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <utility>

#include "../helper_threads.hpp"
#include "../inquiries.hpp"
#include "../process.hpp"
#include "../stall_warning.hpp"
#include "../tasks.hpp"
#include "../thresholds.hpp"
#include "interpreter.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace shim::bindings {
namespace {

std::pair<nb::bytes, std::optional<nb::bytes>> ask(const std::string& address, double timeout) {
  Answer answer;
  {
    const nb::gil_scoped_release released;
    answer = ask_process(address, deadline_after(timeout));
  }
  const auto bytes_of = [](const std::string& text) { return nb::bytes(text.data(), text.size()); };
  return {bytes_of(answer.facts), answer.told_place ? std::optional(bytes_of(answer.place)) : std::nullopt};
}

}  // namespace

void define_process(nb::module_& module) {
  module.def("set_helper_threads", &set_helper_threads, "count"_a,
             "Have so many threads help this process with large operations.");
  module.def("helper_threads", &helper_threads, "How many threads help this process with large operations.");
  module.def("set_cross_memory_from", &set_cross_memory_from, "bytes"_a,
             "Have messages, and broadcasts of two ranks, of at least so many bytes copied between processes in groups "
             "whose rank 0 this process becomes; as the machine is, with 0.");
  module.def("set_stall_warning", &set_stall_warning, "seconds"_a,
             "Warn after so many seconds of one wait that others are missing, never with 0.");
  module.def(
      "ask_process", &ask, "address"_a, "timeout"_a,
      "Ask the process at an address for the facts of its groups, as JSON, and where its program is, if it says so.");
  module.def("process_state", &state_of, "pid"_a,
             "Tell whether a process is running, sleeping or stopped, or nothing.");
  module.def("set_before_exec", &set_before_exec, "function"_a,
             "Set the function that is called before os.execv and its like put another program into this process.");
}

}  // namespace shim::bindings
