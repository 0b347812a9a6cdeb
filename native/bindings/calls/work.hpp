// A rank's membership of a group and its calls, as Python holds them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/calls/member.hpp"
#include "bindings/tensors/tensor_reader.hpp"
#include "progress/tasks.hpp"

namespace shim::bindings {

// Those of an Origin, as Python gives them.
using OriginFields = std::tuple<std::string, std::string, bool, bool, std::string>;

nanobind::object exception_of(const Failure& failure);

// One call, and the tensors that it needs until it has ended.
struct PreparedCall {
  PreparedCall(std::shared_ptr<Member> member, std::unique_ptr<Task> task, Owners owners)
      : member(std::move(member)), task(std::move(task)), owners(std::move(owners)) {}
  PreparedCall(PreparedCall&&) = delete;

  std::shared_ptr<Member> member;
  std::unique_ptr<Task> task;
  Owners owners;
  bool has_noted_end = false;
  std::optional<std::size_t> index_in_begun;  // see begun_calls.cpp
};

// A prepared call that Python holds. When Python lets go of it in the middle, the call stays until it has ended.
struct Work {
  Work(std::shared_ptr<Member> member, std::unique_ptr<Task> task, Owners owners)
      : call(std::make_shared<PreparedCall>(std::move(member), std::move(task), std::move(owners))) {}

  std::shared_ptr<PreparedCall> call;
};

void start(Work& work);
// Carries it out here unless it was started; a timeout that is not negative starts it.
void wait(Work& work, double timeout);
bool is_completed(Work& work);

// Of prepared works that begin together: each reads now what another one is going to write.
void read_before_others_write(Work& work, const nanobind::typed<nanobind::list, Work>& others);

// Waits on the calling thread, and carries the task out there if it was not started; a negative timeout is none.
void wait_for(Task& task, double timeout);

// Whether the last collective of this thread had begun. If so, its arguments are not what raised since. A function that
// reads a collective's arguments sets it to false.
inline thread_local bool call_was_begun = false;

// Carries it out on the calling thread, or returns false when other operations of the group are before it.
bool carry_out(Member& member, Operation& operation, Owners& owners);

// Waits for a receive that was not started, whose tensor counts as written unless nothing of a message was stored.
void carry_out(Task& receive, Owners& owners);

// Lets other Python threads run while the calling one waits, and Ctrl-C interrupt it.
class GilHooks final : public WaitHooks {
 public:
  GilHooks() = default;
  ~GilHooks() override { take_back(); }
  void about_to_block() override;
  void check_interrupted() override;
  void keep_interrupt() override;
  std::string place() override;
  Held held() const override { return held_; }
  // Throws Interrupted where one was kept.
  void throw_kept();

 private:
  void take_back();

  PyThreadState* released_ = nullptr;
  std::optional<nanobind::python_error> kept_;
  Held held_ = Held::thread;  // as at the last check
};

}  // namespace shim::bindings
