#include "bindings/process.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/calls/python_functions.hpp"
#include "bindings/calls/work.hpp"
#include "bindings/interpreter/interpreter.hpp"
#include "bindings/interpreter/program_threads.hpp"
#include "machine/thresholds.hpp"
#include "meeting/rendezvous_listeners.hpp"
#include "platform/process.hpp"
#include "platform/stall_warning.hpp"
#include "progress/tasks.hpp"
#include "reports/inquiries.hpp"
#include "reports/waits.hpp"

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

bool are_of_two(const OriginFields& one, const OriginFields& other) {
  return are_of_two_jobs(std::make_from_tuple<Origin>(one), std::make_from_tuple<Origin>(other));
}

}  // namespace

void define_process(nb::module_& module) {
  module.def("set_cross_memory_from", &set_cross_memory_from, "bytes"_a,
             "Have what two ranks have for each other, at least so many bytes each, read between processes in groups "
             "whose rank 0 this process becomes; as the machine is, with 0.");
  module.def("set_stall_warning", &set_stall_warning, "seconds"_a,
             "Warn after so many seconds of one wait that others are missing, never with 0.");
  module.def(
      "ask_process", &ask, "address"_a, "timeout"_a,
      "Ask the process at an address for the facts of its groups, as JSON, and where its program is, if it says so.");
  module.def(
      "circle_from",
      [](int start, const std::vector<std::vector<int>>& awaited) {
        return circle_from(start, [&awaited](int one) { return awaited.at(static_cast<std::size_t>(one)); });
      },
      "start"_a, "awaited"_a,
      "Return a short circle that can be reached from a number along those which each of them awaits, or nothing.");
  module.def(
      "told_circle",
      [](const std::vector<std::tuple<int, std::string, int>>& waits) {
        std::vector<WaitInCircle> circle;
        for (const auto& [rank, where, held] : waits) circle.push_back({rank, where, static_cast<Held>(held)});
        return told_circle(std::move(circle));
      },
      "waits"_a, "Tell of ranks, of where they wait and of what that holds up, that they wait for each other.");
  module.def("set_makes_no_calls", &set_makes_no_calls, "makes_none"_a,
             "Say of this thread that it makes no calls in groups; take it back before it ends.");
  module.def(
      "threads_in_functions", [] { return threads_in_functions.load(); },
      "How many threads are in functions of Python that the engine has them call.");
  module.def("process_state", &state_of, "pid"_a,
             "Tell whether a process is running, sleeping or stopped, or nothing.");
  module.def("are_of_two_jobs", &are_of_two, "one"_a, "other"_a,
             "Tell whether processes of two origins are to be taken for ranks of two jobs.");
  module.def("set_before_exec", &set_before_exec, "function"_a,
             "Set the function that is called before os.execv and its like put another program into this process.");
}

}  // namespace shim::bindings
