#include "work.hpp"

#include <sys/stat.h>

#include <atomic>
#include <utility>

#include "../inquiries.hpp"
#include "../loans.hpp"
#include "../process.hpp"
#include "../watcher.hpp"
#include "gil_at_end.hpp"
#include "source_line.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

// Above this, moving the data takes longer than giving up the interpreter's lock and getting it back.
constexpr std::size_t large_bytes = 64 * 1024;

// Where the world is lost on this rank, its survivors make a new group, and have given the world up as well. One that
// died is named before those that left, who may have done so for that.
void check_all_there(const Meeting& meeting, const Group& world) {
  const bool is_lost = !world.is_usable();
  int lost = -1;
  for (const int rank : meeting.world_ranks)
    if (lost < 0 && rank != world.rank() && world.has_died(rank)) lost = rank;
  for (std::size_t rank = 0; rank < meeting.world_ranks.size() && lost < 0; ++rank) {
    const int there = meeting.world_ranks[rank];
    if (there == world.rank()) continue;
    if (world.has_ended(there)) lost = there;
    if (!is_lost && world.is_gone(there)) lost = world.culprit_behind(there);
  }
  if (lost < 0) return;
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < meeting.world_ranks.size(); ++rank)
    if (meeting.world_ranks[rank] == lost) ranks.push_back(static_cast<int>(rank));
  const std::string name = "rank " + std::to_string(lost);
  throw Failure(
      FailureKind::peer_lost,
      name + " of the world went before group '" + meeting.name + "' was formed: " + name + world.ending_of(lost),
      ranks);
}

// While the ranks wait for each other to have joined: a socket tells nothing of one whose forked child holds it as
// well.
void check_none_has_gone(const Group& group) {
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank() || !group.has_ended(rank)) continue;
    const std::string name = "rank " + std::to_string(rank);
    throw Failure(FailureKind::peer_lost,
                  name + " went while group '" + group.name() + "' was being formed: " + name + group.ending_of(rank),
                  {rank});
  }
}

// Calls that go on although Python has let go of them. Guarded by the GIL, and never destroyed, like their members.
std::list<PreparedCall>& abandoned() {
  static auto* calls = new std::list<PreparedCall>();
  return *calls;
}

std::atomic<std::size_t> abandoned_calls{0};
std::atomic<bool> is_asked{false};

int let_go_when_asked(void*) {
  is_asked.store(false);
  let_go_of_ended();
  return 0;
}

// Called by any thread that ends a call, without the GIL: the interpreter's main thread does it soon.
void ask_to_let_go() {
  if (abandoned_calls.load() == 0 || !Py_IsInitialized() || is_asked.exchange(true)) return;
  if (Py_AddPendingCall(&let_go_when_asked, nullptr) != 0) is_asked.store(false);  // the next call's end will ask
}

}  // namespace

void GilHooks::about_to_block() {
  if (released_ == nullptr) released_ = PyEval_SaveThread();
}

void GilHooks::check_interrupted() {
  take_back();
  if (PyErr_CheckSignals() != 0) throw Interrupted();  // the Python error stays set for the boundary
  about_to_block();
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

std::shared_ptr<Member> Member::join(const Meeting& meeting, const Member* parent) {
  std::shared_ptr<Member> member;
  try {
    GilHooks hooks;
    hooks.about_to_block();
    const auto check_interrupted = [&] {
      hooks.check_interrupted();
      if (parent != nullptr) check_all_there(meeting, parent->group);
      if (member != nullptr) check_none_has_gone(member->group);
    };
    meet(meeting, check_interrupted, [&](Encounter&& encounter) { make(member, meeting, std::move(encounter)); });
  } catch (const Interrupted&) {
    throw nb::python_error();
  }
  return member;
}

void Member::make(std::shared_ptr<Member>& member, const Meeting& meeting, Encounter&& encounter) {
  auto segment = std::make_shared<Segment>(std::move(encounter.segment));
  struct stat status{};
  ::fstat(segment->file(), &status);
  segment->close_file();
  const std::uint64_t generation = process_generation();
  member.reset(new Member(meeting.name, meeting.world_ranks, meeting.rank, meeting.timeout, std::move(segment)),
               [generation](Member* made) {
                 if (generation == process_generation()) delete made;
               });
  this_thread_is_the_program();
  set_place_teller(&source_line_of_program);
  Group& group = member->group;
  group.set_processes(encounter.pidfds);
  group.note(group.rank()).address.write(Inquiries::tell_of(group, status.st_ino));
  Watcher::instance().watch(group, std::move(encounter.pidfds));
}

void Member::close(const std::string& why) {
  if (!group.is_of_this_process()) return;
  Inquiries::forget(group);
  Watcher::forget(group);
  progress.stop(why);
  let_go_of_ended();
}

Work::~Work() {
  if (task == nullptr || !task->is_started() || task->is_completed() || !member->group.is_of_this_process()) return;
  set_end_listener(&ask_to_let_go);
  place.front() = std::move(*this);
  abandoned().splice(abandoned().end(), place);
  abandoned_calls.store(abandoned().size());
  ask_to_let_go();  // it may have ended before it was counted
}

void let_go_of_ended() {
  if (abandoned_calls.load() == 0) return;
  std::list<PreparedCall> ended;  // letting go of them may run any code, this function too
  for (auto call = abandoned().begin(); call != abandoned().end();) {
    const auto next = std::next(call);
    if (call->task->is_completed()) ended.splice(ended.end(), abandoned(), call);
    call = next;
  }
  abandoned_calls.store(abandoned().size());
}

bool carry_out(Member& member, Operation& operation, Owners& owners) {
  try {
    GilHooks hooks;
    const WaitHooksScope scope(hooks);
    if (operation.bytes() > large_bytes) hooks.about_to_block();
    return member.progress.run_now(operation);
  } catch (const Failure&) {
    keep_while_exposed(operation, owners);
    throw;
  } catch (const Interrupted&) {
    keep_while_exposed(operation, owners);
    throw nb::python_error();
  }
}

void wait_for(Task& task, double timeout) {
  try {
    GilHooks hooks;
    const WaitHooksScope scope(hooks);
    if (task.bytes() > large_bytes) hooks.about_to_block();
    task.wait(timeout);
  } catch (const Interrupted&) {
    throw nb::python_error();
  }
}

}  // namespace shim::bindings
