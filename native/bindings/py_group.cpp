#include "bindings/py_group.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

using namespace nanobind::literals;

namespace shim::bindings {

void define_group(nb::module_& module) {
  nb::class_<PyGroup>(module, "Group", "One rank's membership of a group; see shim.core.engines.base.Engine.")
      .def(nb::init<std::string, std::string, std::vector<int>, int, double, const PyGroup*, Measurements,
                    const OriginFields&, const std::tuple<std::string, std::string>&>(),
           "key"_a, "name"_a, "ranks"_a, "rank"_a, "timeout"_a, "parent"_a.none() = nb::none(),
           "measurements"_a.none() = nb::none(), "origin"_a = std::tuple("", "", false, false, ""),
           "engine"_a = std::tuple("", ""))
      .def("broadcast", &PyGroup::broadcast, "tensor"_a.none(), "root"_a, "now"_a = false)
      .def("all_reduce", &PyGroup::all_reduce, "output"_a.none(), "input"_a.none(), "op"_a, "factor"_a, "now"_a = false)
      .def("reduce", &PyGroup::reduce, "output"_a.none(), "input"_a.none(), "op"_a, "root"_a, "factor"_a,
           "now"_a = false)
      .def("all_gather", &PyGroup::all_gather, "outputs"_a.none(), "input"_a.none(), "output_splits"_a.none(),
           "now"_a = false, "whole"_a = false)
      .def("gather", &PyGroup::gather, "outputs"_a.none(), "input"_a.none(), "root"_a, "output_splits"_a.none(),
           "now"_a = false)
      .def("scatter", &PyGroup::scatter, "output"_a.none(), "inputs"_a.none(), "root"_a, "input_splits"_a.none(),
           "now"_a = false)
      .def("reduce_scatter", &PyGroup::reduce_scatter, "output"_a.none(), "inputs"_a.none(), "op"_a, "factor"_a,
           "input_splits"_a.none(), "now"_a = false, "whole"_a = false)
      .def("all_to_all", &PyGroup::all_to_all, "outputs"_a.none(), "inputs"_a.none(), "output_splits"_a.none(),
           "input_splits"_a.none(), "now"_a = false, "whole"_a = false)
      .def("barrier", &PyGroup::barrier, "now"_a = false, "before"_a = "")
      .def("arrive", &PyGroup::arrive, "request"_a, "move"_a, "now"_a = false)
      .def("send", &PyGroup::send, "tensor"_a.none(), "peer"_a, "tag"_a, "now"_a = false)
      .def("receive", &PyGroup::receive, "tensor"_a.none(), "peer"_a.none(), "tag"_a, "now"_a = false)
      .def("refuse", &PyGroup::refuse, "reason"_a)
      .def("give_up", &PyGroup::give_up, "why"_a)
      .def("is_gone", &PyGroup::is_gone, "rank"_a)
      .def("has_left", &PyGroup::has_left, "rank"_a)
      .def("ending_of", &PyGroup::ending_of, "rank"_a)
      .def("has_ended", &PyGroup::has_ended, "rank"_a)
      .def("is_usable", &PyGroup::is_usable)
      .def("set_timeout", &PyGroup::set_timeout, "seconds"_a)
      .def("thresholds", &PyGroup::thresholds)
      .def("serve_larger_group", &PyGroup::serve_larger_group)
      .def("close", &PyGroup::close, "why"_a = "");
}

}  // namespace shim::bindings
