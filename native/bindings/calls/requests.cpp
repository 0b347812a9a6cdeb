#include "bindings/calls/requests.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/calls/checked_calls.hpp"
#include "bindings/calls/python_functions.hpp"
#include "bindings/calls/work.hpp"
#include "collectives/request.hpp"
#include "group/descriptions.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace shim::bindings {
namespace {

// A tensor of a call, for engines that take tensors and not bytes.
struct View {
  std::string role;
  TensorView tensor;

  std::vector<std::int64_t> first(const std::array<std::int64_t, max_dimensions>& numbers) const {
    return {numbers.begin(), numbers.begin() + tensor.dimensions};
  }
};

// Keeps the arguments alive, and has their memory written to as long as it is there itself.
struct PyRequest {
  Seat seat;
  nb::object arguments;
  Owners owners;     // until it is begun
  nb::object first;  // tensor, of a call on a device
  std::vector<View> views;
  std::unique_ptr<Request> request;

  template <class... Tensors>
  void take(std::unique_ptr<Operation> operation, const Tensors&... tensors) {
    request = std::make_unique<Request>(seat, std::move(operation));
    (add(tensors), ...);
  }
  void add(const TensorArgument& argument) {
    for (const TensorView& view : argument.views()) views.push_back({std::string(argument.role), view});
  }

  Device device() const { return views.empty() ? Device() : views.front().tensor.device; }

  // All tensors of a call are on one device. There nothing goes through a copy.
  void settle_device() {
    for (const View& view : views) {
      if (view.tensor.device != device())
        throw Failure(FailureKind::argument, "{" + views.front().role + "} and {" + view.role +
                                                 "} must be on the same device, got " + name_of(device()) + " and " +
                                                 name_of(view.tensor.device));
      if (!device().is_host() && !view.tensor.is_contiguous())
        throw Failure(FailureKind::tensor, "{" + view.role + "} must be contiguous, as it is on " + name_of(device()) +
                                               "\nPass tensor.contiguous(), and read the result there.");
    }
    if (!device().is_host()) first = owners.first();
    if (!device().is_host() && !request->put_on_device(device().type))
      throw Failure(FailureKind::tensor, "{" + views.front().role + "} and {" + views.back().role +
                                             "} must not overlap in part, as they are on " + name_of(device()) +
                                             "\nPass a copy of one of them.");
  }

  void check_in_host_memory() const {
    if (request->is_on_device())
      throw Failure(FailureKind::state, "the host cannot reach the memory of a call on " + name_of(device()));
  }
};

PyRequest checked(const std::string& collective, int rank, int size, nb::object outputs, nb::object inputs,
                  nb::handle output_splits, nb::handle input_splits, nb::handle op, double factor, int root, bool whole,
                  const char* before, bool devices) {
  call_was_begun = false;
  PyRequest made;
  if (devices) made.owners.allow_devices();
  const Seat seat = made.seat = {rank, size};
  Owners& owners = made.owners;
  made.arguments = nb::make_tuple(outputs, inputs);
  const auto take = [&made](auto operation, const auto&... tensors) { made.take(std::move(operation), tensors...); };
  if (collective == "broadcast")
    checked_broadcast(seat, owners, inputs, root, take);
  else if (collective == "all_reduce")
    checked_all_reduce(seat, owners, outputs, inputs, op, factor, take);
  else if (collective == "reduce")
    checked_reduce(seat, owners, outputs, inputs, op, root, factor, take);
  else if (collective == "all_gather")
    checked_all_gather(seat, owners, outputs, inputs, output_splits, whole, take);
  else if (collective == "gather")
    checked_gather(seat, owners, outputs, inputs, root, output_splits, take);
  else if (collective == "scatter")
    checked_scatter(seat, owners, outputs, inputs, root, input_splits, take);
  else if (collective == "reduce_scatter")
    checked_reduce_scatter(seat, owners, outputs, inputs, op, factor, input_splits, whole, take);
  else if (collective == "all_to_all")
    checked_all_to_all(seat, owners, outputs, inputs, output_splits, input_splits, whole, take);
  else if (collective == "barrier")
    take(make_barrier(seat, before));
  else
    throw Failure(FailureKind::argument, "there is no collective '" + collective + "'");
  if (devices) made.settle_device();
  return made;
}

nb::object memory_of(const Part& part, nb::handle owner) {
  static std::byte nothing;
  void* start = part.data == nullptr ? &nothing : part.data;
  return nb::cast(nb::ndarray<nb::memview, std::uint8_t, nb::ndim<1>>(start, {part.bytes}, owner));
}

nb::list memory_of(const PyRequest& request, const std::vector<Part>& parts, nb::handle owner) {
  request.check_in_host_memory();
  nb::list memory;
  for (const Part& part : parts) memory.append(memory_of(part, owner));
  return memory;
}

std::vector<std::tuple<std::uintptr_t, std::size_t>> places_of(const std::vector<Part>& parts) {
  std::vector<std::tuple<std::uintptr_t, std::size_t>> places;
  for (const Part& part : parts) places.emplace_back(reinterpret_cast<std::uintptr_t>(part.data), part.bytes);
  return places;
}

class Bytes {
 public:
  Bytes(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) throw nb::python_error();
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { PyBuffer_Release(&buffer_); }
  std::byte* data() const { return static_cast<std::byte*>(buffer_.buf); }
  std::size_t size() const { return static_cast<std::size_t>(buffer_.len); }

 private:
  Py_buffer buffer_{};
};

void combine(const PyRequest& request, nb::handle output, const nb::list& of_ranks,
             const std::vector<double>& factors) {
  const Bytes to(output, PyBUF_WRITABLE);
  std::vector<std::unique_ptr<Bytes>> sources;
  std::vector<const std::byte*> starts;
  for (nb::handle one : of_ranks) {
    sources.push_back(std::make_unique<Bytes>(one, PyBUF_SIMPLE));
    starts.push_back(sources.back()->data());
    if (sources.back()->size() != to.size())
      throw Failure(FailureKind::argument, "what is combined must have the size of the result");
  }
  const bool takes_factors = request.request->call().op == ReduceOp::premul_sum;
  if (starts.empty() || (takes_factors && factors.size() != starts.size()))
    throw Failure(FailureKind::argument, "there must be at least one rank, and for PREMUL_SUM a factor of each");
  request.request->combine({to.data(), to.size()}, starts, factors);
}

}  // namespace

std::unique_ptr<Operation> begun(nb::handle request, nb::handle move, bool is_carried, Owners& owners) {
  auto& checked = nb::cast<PyRequest&>(request);
  owners = std::move(checked.owners);
  owners.push_back(nb::borrow(request));
  owners.push_back(nb::borrow(move));
  return checked.request->begun(
      [move = move.ptr(), request = request.ptr(), is_carried] {
        const PythonLock lock;  // the thread that carries the operation out may not hold it
        called(move, request, is_carried);
      },
      is_carried);
}

void define_requests(nb::module_& module) {
  nb::class_<View>(module, "View", "A tensor of a request; strides are in elements.")
      .def_ro("role", &View::role)
      .def_prop_ro("address", [](const View& view) { return reinterpret_cast<std::uintptr_t>(view.tensor.data); })
      .def_prop_ro("dtype", [](const View& view) { return std::string(name_of(view.tensor.dtype)); })
      .def_prop_ro("shape", [](const View& view) { return view.first(view.tensor.shape); })
      .def_prop_ro("strides", [](const View& view) { return view.first(view.tensor.strides); })
      .def_prop_ro("device", [](const View& view) { return name_of(view.tensor.device); });

  nb::class_<PyRequest>(module, "Request", "A checked call; see shim.core.engines.base.Engine.arrive.")
      .def_prop_ro("collective", [](const PyRequest& self) { return std::string(name_of(self.request->call().kind)); })
      .def_prop_ro("rank", [](const PyRequest& self) { return self.seat.rank; })
      .def_prop_ro("size", [](const PyRequest& self) { return self.seat.size; })
      .def_prop_ro("root", [](const PyRequest& self) { return self.request->call().root; })
      .def_prop_ro("op", [](const PyRequest& self) { return static_cast<int>(self.request->call().op); })
      .def_prop_ro("factor", [](const PyRequest& self) { return self.request->call().factor; })
      .def_prop_ro("dtype", [](const PyRequest& self) { return std::string(name_of(self.request->call().dtype)); })
      .def_ro("views", &PyRequest::views)
      .def_prop_ro("inputs",
                   [](nb::handle self) {
                     const auto& request = nb::cast<PyRequest&>(self);
                     return memory_of(request, request.request->inputs(), self);
                   })
      .def_prop_ro("outputs",
                   [](nb::handle self) {
                     const auto& request = nb::cast<PyRequest&>(self);
                     return memory_of(request, request.request->outputs(), self);
                   })
      .def_prop_ro("device", [](const PyRequest& self) { return name_of(self.device()); })
      .def_prop_ro("device_number", [](const PyRequest& self) { return self.device().number; })
      .def(
          "current_stream",
          [](const PyRequest& self) { return self.first.is_valid() ? current_stream(self.first, self.device()) : 0; },
          "The stream on which the framework of the call's tensors works now, in this thread; 0 where it does not say.")
      .def_prop_ro("input_places", [](const PyRequest& self) { return places_of(self.request->inputs()); })
      .def_prop_ro("output_places", [](const PyRequest& self) { return places_of(self.request->outputs()); })
      .def(
          "load", [](const PyRequest& self) { self.request->load(); },
          "Have the inputs be bytes, before they are moved without a group.")
      .def(
          "store", [](const PyRequest& self) { self.request->store(); },
          "Have the outputs' tensors get the bytes that were moved.")
      .def("combine", &combine, "output"_a, "of_ranks"_a, "factors"_a,
           "Combine the bytes of all ranks, in their order, into those of output.");

  module.def("check_call", &checked, "collective"_a, "rank"_a, "size"_a, nb::kw_only(), "outputs"_a = nb::none(),
             "inputs"_a = nb::none(), "output_splits"_a = nb::none(), "input_splits"_a = nb::none(), "op"_a = 0,
             "factor"_a = 1.0, "root"_a = -1, "whole"_a = false, "before"_a = "", "devices"_a = false,
             "Check one rank's call of a collective.");
}

}  // namespace shim::bindings
