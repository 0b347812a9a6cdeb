#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <functional>

#include "bindings/calls/moved_task.hpp"
#include "bindings/py_group.hpp"
#include "group/descriptions.hpp"
#include "group/mirror.hpp"

using namespace nanobind::literals;

namespace shim::bindings {
namespace {

// Of ranks on several hosts. A carrier takes this one's words to the others (group/carrier.hpp); what they say is taken
// here (group/mirror.hpp).
class CarriedGroup final : public PyGroup {
 public:
  CarriedGroup(std::string key, std::string name, std::vector<int> ranks, int rank, double timeout,
               const std::tuple<std::string, std::string>& engine, nb::object carrier, Across across)
      : PyGroup(carried(std::move(key), std::move(name), std::move(ranks), rank, timeout, engine, std::move(carrier),
                        std::move(across))) {}

  // A message that `mover` moves; see MovedTask. Carried out `now`, it returns the rank that sent, or for a send -1.
  std::variant<Work, int> transfer(nb::handle tensor, bool is_send, std::optional<int> with, nb::handle tag,
                                   nb::object mover, bool now) {
    Owners owners;
    const TensorArgument what =
        is_send ? read_tensor(tensor, "tensor", owners) : read_output(read_tensor, tensor, "tensor", owners);
    if (with) check_rank("peer", *with, group().size());
    if (!is_send) check_writable(what);
    tag_of(tag);
    group().check_usable();
    const int peer = with.value_or(Transfer::any_rank);
    auto task =
        std::make_unique<MovedTask>(member(), what.tensor(), nb::borrow(tensor), is_send, peer, std::move(mover));
    if (!now) return Work(member(), std::move(task), std::move(owners));
    if (is_send)
      wait_for(*task, -1.0);
    else
      carry_out(*task, owners);
    return task->source_rank();
  }

  void take_arrival(int rank, std::uint64_t sequence) {
    check_rank("rank", rank, group().size());
    shim::take_arrival(group(), rank, sequence);
  }

  // What this rank waits for, where its program called, and for how many seconds; nothing where no wait takes long.
  std::optional<std::tuple<std::string, std::string, double>> note() const {
    const RankNote& note = group().note(group().rank());
    const std::int64_t since = note.waits_since.load();
    if (since == 0) return std::nullopt;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const double age = std::chrono::duration<double>(now - std::chrono::nanoseconds(since)).count();
    return std::tuple(note.waits_for.read(), note.waits_at.read(), age);
  }

  // What a call of this rank's that another one was lost in is to raise.
  void check_rank_present(int rank) {
    check_rank("rank", rank, group().size());
    group().check_usable();
    if (rank != group().rank()) group().check_present(rank);
  }

  void give_up(const std::string& why) {
    group().record(Failure(FailureKind::engine, why + "\nThe group can no longer be used."));
  }

  void take_place(int rank, std::uint64_t sequence, const std::string& place) {
    check_rank("rank", rank, group().size());
    shim::take_place(group(), rank, sequence, place);
  }
  // `age`: seconds since it has begun to wait.
  void take_note(int rank, const std::string& waits_for, const std::string& waits_at, double age) {
    check_rank("rank", rank, group().size());
    shim::take_note(group(), rank, waits_for, waits_at, static_cast<std::int64_t>(age * 1e9));
  }
  void take_ending(int rank, int state, int cause, const std::string& reason, bool has_left) {
    check_rank("rank", rank, group().size());
    if (state < 0 || state > static_cast<int>(RankState::failed)) throw Failure(FailureKind::engine, "no such state");
    group().take_ending(rank, static_cast<RankState>(state), cause, reason, has_left);
  }
  void take_process(int rank, int pid) {
    check_rank("rank", rank, group().size());
    group().note(rank).process.store(pid);
  }
  void mark_lost(int rank, const std::string& how) {
    check_rank("rank", rank, group().size());
    group().mark_lost(rank, how);
  }
  // Where this process answers others of its host.
  std::string address() const { return group().note(group().rank()).address.read(); }
  std::uint64_t sequence() const { return newest_call(group(), group().rank()); }
  // The last operation at which all ranks have arrived, as far as is known here.
  std::uint64_t exchanged() const {
    std::uint64_t least = sequence();
    for (int rank = 0; rank < group().size(); ++rank) least = std::min(least, newest_call(group(), rank));
    return least;
  }
  void leave(const std::string& why) { member()->leave(why); }
  double timeout() const { return group().timeout(); }

 private:
  static std::shared_ptr<Member> carried(std::string key, std::string name, std::vector<int> ranks, int rank,
                                         double timeout, const std::tuple<std::string, std::string>& engine,
                                         nb::object carrier, Across across) {
    if (ranks.size() > max_ranks)
      throw Failure(FailureKind::argument, "a group must have at most " + std::to_string(max_ranks) + " ranks, got " +
                                               std::to_string(ranks.size()));
    timeout = std::min(timeout, longest_timeout);
    Meeting meeting{std::move(key), std::move(name), std::move(ranks), rank, timeout};
    std::tie(meeting.engine, meeting.engine_reason) = engine;
    return Member::across(meeting, across, std::move(carrier));
  }
};

}  // namespace

void define_carried_group(nb::module_& module) {
  nb::class_<Wire>(module, "Wire",
                   "A connection to the leader of another host, of which it owns the socket with this descriptor.")
      .def("__init__", [](Wire* self, int file) { new (self) Wire(Descriptor(file)); }, "file"_a);

  nb::class_<CarriedGroup, PyGroup>(module, "CarriedGroup", "One rank's membership of a group across hosts.")
      .def(
          "__init__",
          [](CarriedGroup* self, std::string key, std::string name, std::vector<int> ranks, int rank, double timeout,
             const std::tuple<std::string, std::string>& engine, nb::object carrier,
             std::vector<std::vector<int>> hosts, std::vector<std::shared_ptr<Wire>> wires, std::uint64_t hash_seed,
             std::vector<int> pids) {
            new (self)
                CarriedGroup(std::move(key), std::move(name), std::move(ranks), rank, timeout, engine,
                             std::move(carrier), {std::move(hosts), std::move(wires), hash_seed, std::move(pids)});
          },
          "key"_a, "name"_a, "ranks"_a, "rank"_a, "timeout"_a, "engine"_a, "carrier"_a, "hosts"_a, "wires"_a,
          "hash_seed"_a, "pids"_a)
      .def("transfer", &CarriedGroup::transfer, "tensor"_a.none(), "is_send"_a, "peer"_a.none(), "tag"_a, "mover"_a,
           "now"_a = false)
      .def("note", &CarriedGroup::note)
      .def("take_arrival", &CarriedGroup::take_arrival, "rank"_a, "sequence"_a)
      .def("take_place", &CarriedGroup::take_place, "rank"_a, "sequence"_a, "place"_a)
      .def("take_note", &CarriedGroup::take_note, "rank"_a, "waits_for"_a, "waits_at"_a, "age"_a)
      .def("take_ending", &CarriedGroup::take_ending, "rank"_a, "state"_a, "cause"_a, "reason"_a, "has_left"_a)
      .def("take_process", &CarriedGroup::take_process, "rank"_a, "pid"_a)
      .def("mark_lost", &CarriedGroup::mark_lost, "rank"_a, "how"_a)
      .def("check_rank_present", &CarriedGroup::check_rank_present, "rank"_a)
      .def("give_up", &CarriedGroup::give_up, "why"_a)
      .def("address", &CarriedGroup::address)
      .def("sequence", &CarriedGroup::sequence)
      .def("exchanged", &CarriedGroup::exchanged)
      .def("leave", &CarriedGroup::leave, "why"_a = "")
      .def("timeout", &CarriedGroup::timeout);
}

}  // namespace shim::bindings
