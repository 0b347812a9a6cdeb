#include "bindings/errors.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <new>

#include "bindings/calls/work.hpp"
#include "platform/failure.hpp"
#include "tensors/devices.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

const char* class_name_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::argument:
      return "ArgumentError";
    case FailureKind::rank:
      return "RankError";
    case FailureKind::tensor:
      return "TensorError";
    case FailureKind::state:
      return "StateError";
    case FailureKind::memory:
      return "OutOfMemoryError";
    case FailureKind::mismatch:
      return "MismatchError";
    case FailureKind::peer_lost:
      return "PeerLostError";
    case FailureKind::timeout:
      return "CollectiveTimeoutError";
    case FailureKind::engine:
      break;
  }
  return "EngineError";
}

}  // namespace

nb::object exception_of(const Failure& failure) {
  nb::object exception = nb::module_::import_("shim.errors").attr(class_name_of(failure.kind))(failure.what());
  if (!failure.ranks.empty()) {
    nb::list ranks;
    for (const int rank : failure.ranks) ranks.append(rank);
    exception.attr("ranks") = nb::tuple(ranks);
  }
  return exception;
}

namespace {

void raise(const nb::object& exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

nb::object exception_of(const DeviceFailure& failure) {
  nb::object exception = nb::module_::import_("shim.errors").attr("DeviceTensorError")(failure.what());
  exception.attr("device") = nb::make_tuple(name_of_device_type(failure.device.type), failure.device.number);
  return exception;
}

}  // namespace

void translate_failures() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      try {
        std::rethrow_exception(thrown);
      } catch (const DeviceFailure& failure) {
        raise(exception_of(failure));
      } catch (const Failure& failure) {
        raise(exception_of(failure));
      } catch (const std::bad_alloc&) {  // of a class that core knows, and tells the others of
        raise(exception_of(Failure(FailureKind::memory, "there is not enough memory for the call")));
      }
    } catch (nb::python_error& error) {  // an interrupt that came while the exception was made
      error.restore();
    }
  });
}

}  // namespace shim::bindings
