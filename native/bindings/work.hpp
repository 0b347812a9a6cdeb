// A rank's membership of a group and its calls, as Python holds them.
#pragma once

#include <nanobind/nanobind.h>

#include <list>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "../progress.hpp"
#include "../rendezvous.hpp"
#include "tensor_reader.hpp"

namespace shim::bindings {

nanobind::object exception_of(const Failure& failure);

// Lives as long as the group or any work of it. In a forked child it is never destroyed: it belongs to the parent.
struct Member {
  Member(std::string name, std::vector<int> world_ranks, int rank, double timeout, std::shared_ptr<Segment> segment)
      : group(std::move(name), std::move(world_ranks), rank, timeout, std::move(segment)), progress(group) {}
  ~Member() { close(); }
  // Meets the other ranks. Throws Failure(peer_lost) when one of them goes from `parent`, the world, meanwhile.
  static std::shared_ptr<Member> join(const Meeting& meeting, const Member* parent);
  // Sets `member`, without the GIL. Where it throws, what it has made is left there, to be destroyed with the GIL.
  static void make(std::shared_ptr<Member>& member, const Meeting& meeting, Encounter&& encounter);
  // Says to the others why, if there is something to say.
  void close(const std::string& why = {});

  Group group;
  Progress progress;
};

// Keeps what owns the tensors for good where another process may still write to them, although the call has ended.
template <class Call>
void keep_while_exposed(const Call& call, Owners& owners) {
  if (call.is_exposed()) new (std::nothrow) Owners(std::move(owners));
}

// One call, and the tensors that it needs until it has ended.
struct PreparedCall {
  PreparedCall() = default;
  PreparedCall(std::shared_ptr<Member> member, std::unique_ptr<Task> task, Owners owners)
      : member(std::move(member)), task(std::move(task)), owners(std::move(owners)) {}
  PreparedCall(PreparedCall&&) = default;
  PreparedCall& operator=(PreparedCall&&) = default;
  ~PreparedCall() {
    if (task != nullptr) keep_while_exposed(*task, owners);
  }

  std::shared_ptr<Member> member;
  std::unique_ptr<Task> task;
  Owners owners;
};

// A prepared call that Python holds. When Python lets go of it in the middle, what it needs stays until it has ended.
struct Work : PreparedCall {
  using PreparedCall::PreparedCall;
  Work(Work&&) = default;
  ~Work();

  std::list<PreparedCall> place = std::list<PreparedCall>(1);  // where it goes then, when there may be no memory
};

// Lets go of what the calls that have ended needed and nobody holds any more. Needs the GIL.
void let_go_of_ended();

// Waits on the calling thread, and carries the task out there if it was not started; a negative timeout is none.
void wait_for(Task& task, double timeout);

// Carries it out on the calling thread, or returns false when other operations of the group are before it.
bool carry_out(Member& member, Operation& operation, Owners& owners);

// Lets other Python threads run while the calling one waits, and Ctrl-C interrupt it.
class GilHooks final : public WaitHooks {
 public:
  GilHooks() = default;
  ~GilHooks() override { take_back(); }
  void about_to_block() override;
  void check_interrupted() override;
  std::string place() override;

 private:
  void take_back();

  PyThreadState* released_ = nullptr;
};

}  // namespace shim::bindings
