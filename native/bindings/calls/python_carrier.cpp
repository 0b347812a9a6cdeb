#include "bindings/calls/python_carrier.hpp"

#include <nanobind/stl/string.h>

#include "bindings/calls/python_functions.hpp"
#include "group/group.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

constexpr auto last_words = std::chrono::milliseconds(500);

// What a rank says may have been cut in the middle of a character.
nb::object text_of(std::string_view text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

}  // namespace

PythonCarrier::~PythonCarrier() {
  if (!python_.is_valid()) return;
  const PythonLock lock;
  python_.reset();
}

void PythonCarrier::let_go() { python_.reset(); }

// With the lock. What it raises is shown and ends nothing: it is no answer to a call of this rank.
template <class... Arguments>
nb::object PythonCarrier::tell(const char* method, const Arguments&... arguments) const {
  if (!python_.is_valid() || !group_.is_of_this_process()) return {};
  const nb::error_scope pending;
  try {
    return python_.attr(method)(arguments...);
  } catch (nb::python_error& error) {
    error.discard_as_unraisable(method);
    return {};
  }
}

void PythonCarrier::stop() {
  if (crossing_ != nullptr) crossing_->stop(last_words);
}

bool PythonCarrier::exchange(std::uint64_t sequence) { return crossing_ != nullptr && crossing_->exchange(sequence); }

void PythonCarrier::refused(std::uint64_t sequence) {
  if (crossing_ != nullptr) crossing_->carry_on(sequence);
}

bool PythonCarrier::sleep(std::chrono::milliseconds longest) {
  return crossing_ != nullptr && crossing_->sleep(longest);
}

void PythonCarrier::ring() {
  if (crossing_ != nullptr) crossing_->ring();
}

void PythonCarrier::told_place(std::uint64_t sequence, std::string_view place) {
  const PythonLock lock;
  tell("told_place", sequence, text_of(place));
}

void PythonCarrier::ask_all() {
  const PythonLock lock;
  tell("ask_all");
}

void PythonCarrier::ended(RankState state, int cause, const std::string& reason, bool has_left, bool is_late) {
  const PythonLock lock;
  tell("ended", static_cast<int>(state), cause, text_of(reason), has_left, is_late);
}

std::string PythonCarrier::whereabouts(int rank) {
  const PythonLock lock;
  const nb::object said = tell("whereabouts", rank);
  return said.is_valid() ? nb::cast<std::string>(nb::str(said)) : "does not answer";
}

std::string PythonCarrier::circle() {
  const PythonLock lock;
  const nb::object said = tell("circle");
  return said.is_valid() ? nb::cast<std::string>(nb::str(said)) : "";
}

}  // namespace shim::bindings
