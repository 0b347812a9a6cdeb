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

#include "bindings/calls/python_carrier.hpp"
#include "bindings/tensors/tensor_reader.hpp"
#include "meeting/rendezvous.hpp"
#include "progress/progress.hpp"

namespace shim::bindings {

// Those of an Origin, as Python gives them.
using OriginFields = std::tuple<std::string, std::string, bool, bool, std::string>;

nanobind::object exception_of(const Failure& failure);

// What a rank of a group across hosts knows of these.
struct Across {
  std::vector<std::vector<int>> hosts;       // the group's ranks by host
  std::vector<std::shared_ptr<Wire>> wires;  // to the other hosts' leaders, where this rank leads its own
  std::uint64_t hash_seed;                   // the same on all ranks
  std::vector<int> pids;                     // by rank, of those on other hosts that are emulated here; else 0
};

// Lives as long as the group or any work of it. In a forked child it is never destroyed: it belongs to the parent.
struct Member {
  Member(std::string name, std::vector<int> world_ranks, int rank, double timeout, std::shared_ptr<Segment> segment,
         const std::vector<int>& here)
      : group(std::move(name), std::move(world_ranks), rank, timeout, std::move(segment), here), progress(group) {}
  ~Member() { close(); }
  // Meets the other ranks. Throws Failure(peer_lost) when one of them goes from `parent`, the world, meanwhile, and
  // Failure(mismatch) when they wait for this one elsewhere, which then refuses what they wait in.
  static std::shared_ptr<Member> join(const Meeting& meeting, Member* parent);
  // Joins ranks of several hosts, of which it meets those of its own; `carrier` takes its words to the others.
  static std::shared_ptr<Member> across(const Meeting& meeting, const Across& across, nanobind::object carrier);
  // Sets `member`, without the GIL. Where it throws, what it has made is left there, to be destroyed with the GIL. The
  // `identity` is the group's own, that of its file of memory unless it is given; `here` is as of a Group.
  static void make(std::shared_ptr<Member>& member, const Meeting& meeting, Encounter&& encounter,
                   std::optional<std::uint64_t> identity = std::nullopt, const std::vector<int>& here = {});
  // Says to the others why, if there is something to say.
  void close(const std::string& why = {});

  std::unique_ptr<PythonCarrier> carrier;  // where the ranks share no memory
  Group group;
  Progress progress;
};

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
