#include "bindings/calls/begun_calls.hpp"
#include "bindings/calls/python_functions.hpp"
#include "messages/end_listener.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "platform/process.hpp"
#include "platform/threads.hpp"

namespace shim::bindings {
namespace {

using Calls = std::vector<std::shared_ptr<PreparedCall>>;

// Started calls whose end is not noted, in no order. Guarded by the GIL, and never destroyed, like their members.
Calls& begun = *new Calls();
std::uint64_t begun_in = process_generation();  // guarded by the GIL
std::atomic<std::size_t> begun_calls{0};        // how many, for threads without the GIL
std::atomic<bool> has_ended{false};             // one of them, since somebody looked

int note_ends_when_asked(void*) {
  note_ends();
  return 0;
}

// Has the interpreter's main thread note ends soon. Where it has no room, whoever starts or waits next does it.
#if PY_VERSION_HEX >= 0x030C0000
void begin_to_ask() {}
void ask_main_thread() { Py_AddPendingCall(&note_ends_when_asked, nullptr); }
#else
// Before 3.12 this reads the thread state of whoever has the GIL, which may just be freed, unless it is called with the
// GIL (https://github.com/python-greenlet/greenlet/pull/322). A thread that ends calls must not wait for that: one of
// its own does, which is never joined. Not needed from Python 3.12 on.
std::atomic<bool>& is_asked = *new std::atomic<bool>(false);  // never destroyed, as the thread outlives the program
std::optional<std::uint64_t> asked_in;                        // the process that has the thread; guarded by the GIL

void ask_main_thread() {
  is_asked.store(true);
  is_asked.notify_one();
}

void begin_to_ask() {
  if (asked_in == process_generation()) return;
  asked_in = process_generation();
  try {
    begin_thread("shim ends", [] {
      for (;;) {
        is_asked.wait(false);
        is_asked.store(false);
        const PythonLock lock;
        Py_AddPendingCall(&note_ends_when_asked, nullptr);
      }
    }).detach();
  } catch (const Failure&) {  // whoever starts or waits next notes ends
  }
}
#endif

// Called by any thread that ends a call, without the GIL.
void ask_to_note_ends() {
  if (begun_calls.load() == 0 || !Py_IsInitialized() || has_ended.exchange(true)) return;
  ask_main_thread();
}

// Of its parent's calls, a forked child notes those that had ended, and lets go of the others: they end in the parent.
void leave_calls_of_parent() {
  if (begun_in == process_generation()) return;
  begun_in = process_generation();
  begun_calls.store(0);
  const Calls inherited = std::exchange(begun, {});
  for (const auto& call : inherited) call->index_in_begun.reset();
  for (const auto& call : inherited) {
    if (call->task->is_completed())
      note_end(call);
    else
      call->owners.release_memory();
  }
}

}  // namespace

void note_begin(const std::shared_ptr<PreparedCall>& call) {
  begin_to_ask();
  set_end_listener(&ask_to_note_ends);
  begun.push_back(call);
  call->index_in_begun = begun.size() - 1;
  begun_calls.store(begun.size());
}

void take_from_begun(PreparedCall& call) {
  if (!call.index_in_begun) return;
  begun.back()->index_in_begun = call.index_in_begun;
  std::swap(begun[*call.index_in_begun], begun.back());
  call.index_in_begun.reset();
  begun.pop_back();
  begun_calls.store(begun.size());
}

void note_end(const std::shared_ptr<PreparedCall>& held) {
  const auto call = held;  // what is told may run any code
  if (std::exchange(call->has_noted_end, true)) return;
  take_from_begun(*call);
  const std::optional<Failure> failure = call->task->failure();
  if (!failure || !has_written_nothing(*failure)) call->owners.raise_versions();
  call->owners.release_memory();
}

void keep_until_end(const std::shared_ptr<PreparedCall>& call) {
  if (!call->member->group.is_of_this_process()) return;  // it goes on in the parent
  if (!call->has_noted_end && !call->index_in_begun) note_begin(call);
  if (call->task->is_completed()) note_end(call);  // perhaps before it was counted
}

void note_ends() {
  leave_calls_of_parent();
  has_ended.store(false);
  for (std::size_t i = begun.size(); i-- > 0;)  // what is noted may run any code, this function too
    if (i < begun.size() && begun[i]->task->is_completed()) note_end(begun[i]);
}

void note_ends_if_asked() {
  if (has_ended.load() || begun_in != process_generation()) note_ends();
}

}  // namespace shim::bindings
