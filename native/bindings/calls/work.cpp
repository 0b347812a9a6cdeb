#include "bindings/calls/work.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "bindings/calls/begun_calls.hpp"
#include "bindings/interpreter/gil_at_end.hpp"
#include "bindings/interpreter/program_threads.hpp"
#include "bindings/interpreter/source_line.hpp"
#include "group/descriptions.hpp"
#include "group/loans.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

// Above this, moving the data takes longer than giving up the interpreter's lock and getting it back.
constexpr std::size_t large_bytes = 64 * 1024;

// An interrupt that was kept comes when the call has ended, however it did.
template <class Call>
bool after_interrupts(GilHooks& hooks, const Call& call) {
  bool result = false;
  try {
    result = call();
  } catch (const Failure&) {
    hooks.throw_kept();
    throw;
  }
  hooks.throw_kept();
  return result;
}

}  // namespace

void GilHooks::about_to_block() {
  if (released_ == nullptr) released_ = PyEval_SaveThread();
}

void GilHooks::check_interrupted() {
  take_back();
  throw_kept();
  held_ = is_only_thread() && !handles_signals() ? Held::program : Held::thread;
  if (PyErr_CheckSignals() != 0) throw Interrupted();  // the Python error stays set for the boundary
  about_to_block();
}

void GilHooks::keep_interrupt() {
  kept_.emplace();
  about_to_block();
}

void GilHooks::throw_kept() {
  if (!kept_) return;
  take_back();
  kept_->restore();
  kept_.reset();
  throw Interrupted();
}

std::string GilHooks::place() {
  const bool was_released = released_ != nullptr;
  take_back();
  std::string line = source_line();
  if (was_released) about_to_block();
  return line;
}

void GilHooks::take_back() {
  if (released_ == nullptr) return;
  take_or_stay([this] { PyEval_RestoreThread(std::exchange(released_, nullptr)); });
}

void start(Work& work) {
  note_ends_if_asked();
  PreparedCall& call = *work.call;
  if (call.task->is_started()) return;
  if (std::string* place = call.task->place(); place != nullptr) *place = source_line();
  call.owners.hold_memory();
  note_begin(work.call);
  try {
    call.task->start();
  } catch (...) {
    take_from_begun(call);
    throw;
  }
  call.owners.raise_versions();  // from now on it may write at any time
}

void wait(Work& work, double timeout) {
  note_ends_if_asked();
  Task& task = *work.call->task;
  if (timeout >= 0) start(work);
  try {
    wait_for(task, timeout);
  } catch (...) {
    if (task.is_started()) keep_until_end(work.call);
    throw;
  }
  note_end(work.call);
}

bool is_completed(Work& work) {
  note_ends_if_asked();
  if (!work.call->task->is_completed()) return false;
  note_end(work.call);
  return true;
}

void read_before_others_write(Work& work, const nb::typed<nb::list, Work>& others) {
  std::vector<Accesses> calls{work.call->task->accesses()};
  for (nb::handle other : others) calls.push_back(nb::cast<Work&>(other).call->task->accesses());
  try {
    read_before_others_write(calls);
  } catch (const std::bad_alloc&) {
    throw Failure(FailureKind::memory, "there is not enough memory to copy tensors that other calls of the list write");
  }
}

bool carry_out(Member& member, Operation& operation, Owners& owners) {
  try {
    GilHooks hooks;
    const WaitHooksScope scope(hooks);
    if (operation.bytes() > large_bytes) hooks.about_to_block();
    return after_interrupts(hooks, [&] { return member.progress.run_now(operation); });
  } catch (const Failure& failure) {
    if (!has_written_nothing(failure)) owners.raise_versions();
    throw;
  } catch (const Interrupted&) {
    {
      const nb::error_scope pending;
      owners.raise_versions();
    }
    throw nb::python_error();
  }
}

void wait_for(Task& task, double timeout) {
  try {
    GilHooks hooks;
    const WaitHooksScope scope(hooks);
    if (task.bytes() > large_bytes) hooks.about_to_block();
    after_interrupts(hooks, [&] {
      task.wait(timeout);
      return true;
    });
  } catch (const Interrupted&) {
    throw nb::python_error();
  }
}

void carry_out(Task& receive, Owners& owners) {
  try {
    wait_for(receive, -1.0);
  } catch (const Failure& failure) {
    if (!has_written_nothing(failure)) owners.raise_versions();
    throw;
  } catch (const nb::python_error&) {  // interrupted: a part may have come
    owners.raise_versions();
    throw;
  }
  owners.raise_versions();
}

}  // namespace shim::bindings
