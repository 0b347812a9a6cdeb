// The Python module shim._native: groups and works. Arguments are checked here, with the GIL; engines know no Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <variant>

#include "bindings/calls/begun_calls.hpp"
#include "bindings/calls/call_records.hpp"
#include "bindings/calls/checked_calls.hpp"
#include "bindings/calls/moved_task.hpp"
#include "bindings/calls/requests.hpp"
#include "bindings/calls/tensor_keys.hpp"
#include "bindings/calls/work.hpp"
#include "bindings/errors.hpp"
#include "bindings/interpreter/interpreter.hpp"
#include "bindings/interpreter/source_line.hpp"
#include "bindings/process.hpp"
#include "bindings/shared_tensors.hpp"
#include "group/call_description.hpp"
#include "group/mirror.hpp"
#include "group/rank_notes.hpp"
#include "meeting/rendezvous.hpp"
#include "platform/process.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace shim::bindings {
namespace {

std::int64_t tag_of(nb::handle tag) {
  int overflow = 0;
  const long value = PyLong_AsLongAndOverflow(tag.ptr(), &overflow);
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  if (overflow != 0 || (value != static_cast<std::int32_t>(value) && value != Transfer::collective_tag))
    throw Failure(FailureKind::argument, std::string("{tag} must fit into 32 bits, got ") + nb::repr(tag).c_str());
  return value;
}

// One rank of a group.
class PyGroup {
 public:
  using Prepared = std::optional<Work>;

  PyGroup(std::string key, std::string name, std::vector<int> ranks, int rank, double timeout, const PyGroup* parent,
          Measurements measurements, const OriginFields& origin, const std::tuple<std::string, std::string>& engine,
          nb::object carrier, const std::vector<int>& pids) {
    if (ranks.size() > max_ranks)
      throw Failure(FailureKind::argument, "a group on one host must have at most " + std::to_string(max_ranks) +
                                               " ranks, got " + std::to_string(ranks.size()));
    timeout = std::min(timeout, longest_timeout);
    Meeting meeting{std::move(key), std::move(name), std::move(ranks), rank, timeout, std::move(measurements)};
    meeting.origin = std::make_from_tuple<Origin>(origin);
    std::tie(meeting.engine, meeting.engine_reason) = engine;
    if (!carrier.is_none()) {
      const std::size_t identity = std::hash<std::string>()(meeting.key) >> 11;  // Python's JSON reads 53 bits exactly
      std::vector<Descriptor> pidfds;
      for (const int pid : pids) pidfds.push_back(pid > 0 ? pidfd_of(pid) : Descriptor());
      member_ = Member::carried(meeting, identity, std::move(carrier), std::move(pidfds));
      return;
    }
    member_ = Member::join(meeting, parent == nullptr ? nullptr : parent->member_.get());
  }

  // What is done with a checked call.
  auto carried_out(Owners& owners, bool now) {
    return [this, &owners, now](std::unique_ptr<Operation> operation, const auto&...) {
      return made(std::move(operation), owners, now);
    };
  }

  Prepared broadcast(nb::handle tensor, int root, bool now) {
    Owners owners;
    return checked_broadcast(seat(), owners, tensor, root, carried_out(owners, now));
  }

  Prepared all_reduce(nb::handle output, nb::handle input, nb::handle op, double factor, bool now) {
    Owners owners;
    return checked_all_reduce(seat(), owners, output, input, op, factor, carried_out(owners, now));
  }

  Prepared reduce(nb::handle output, nb::handle input, nb::handle op, double factor, int root, bool now) {
    Owners owners;
    return checked_reduce(seat(), owners, output, input, op, factor, root, carried_out(owners, now));
  }

  Prepared all_gather(nb::handle outputs, nb::handle input, nb::handle output_splits, bool now, bool whole) {
    Owners owners;
    return checked_all_gather(seat(), owners, outputs, input, output_splits, whole, carried_out(owners, now));
  }

  Prepared gather(nb::handle outputs, nb::handle input, nb::handle output_splits, int root, bool now) {
    Owners owners;
    return checked_gather(seat(), owners, outputs, input, output_splits, root, carried_out(owners, now));
  }

  Prepared scatter(nb::handle output, nb::handle inputs, nb::handle input_splits, int root, bool now) {
    Owners owners;
    return checked_scatter(seat(), owners, output, inputs, input_splits, root, carried_out(owners, now));
  }

  Prepared reduce_scatter(nb::handle output, nb::handle inputs, nb::handle input_splits, nb::handle op, double factor,
                          bool now, bool whole) {
    Owners owners;
    return checked_reduce_scatter(seat(), owners, output, inputs, input_splits, op, factor, whole,
                                  carried_out(owners, now));
  }

  Prepared all_to_all(nb::handle outputs, nb::handle inputs, nb::handle output_splits, nb::handle input_splits,
                      bool now, bool whole) {
    Owners owners;
    return checked_all_to_all(seat(), owners, outputs, inputs, output_splits, input_splits, whole,
                              carried_out(owners, now));
  }

  Prepared barrier(bool now, const char* before) {
    Owners owners;
    return made(make_barrier(seat(), before), owners, now);
  }

  // Begins with what the ranks agree on; `move`, a function of Python, is then called with the request.
  Prepared arrive(nb::handle request, nb::handle move, bool now) {
    Owners owners;
    return made(begun(request, move, group().carrier != nullptr, owners), owners, now);
  }

  // A message that `mover` moves; see MovedTask. Carried out `now`, it returns the rank that sent, or for a send -1.
  std::variant<Work, int> transfer(nb::handle tensor, bool is_send, std::optional<int> with, nb::handle tag,
                                   nb::object mover, bool now) {
    Owners owners;
    const TensorArgument what = is_send ? read_tensor(tensor, "tensor", owners)
                                        : read_output(read_tensor, tensor, "tensor", owners);
    if (with) check_rank("peer", *with, group().size());
    if (!is_send) check_writable(what);
    tag_of(tag);
    group().check_usable();
    const int peer = with.value_or(Transfer::any_rank);
    auto task = std::make_unique<MovedTask>(member_, what.tensor(), is_send, peer, std::move(mover));
    if (!now) return Work(member_, std::move(task), std::move(owners));
    if (is_send)
      wait_for(*task, -1.0);
    else
      carry_out(*task, owners);
    return task->source_rank();
  }

  bool take_arrivals(const std::vector<nb::bytes>& packets) {
    std::vector<std::string_view> arrivals;
    for (const nb::bytes& packet : packets) arrivals.emplace_back(packet.c_str(), packet.size());
    return shim::take_arrivals(group(), arrivals);
  }

  void take_tables(std::uint64_t sequence, const std::vector<nb::bytes>& by_rank) {
    std::vector<std::string_view> tables;
    for (const nb::bytes& table : by_rank) tables.emplace_back(table.c_str(), table.size());
    shim::take_tables(group(), sequence, tables);
  }

  void take_arrival(int rank, const nb::bytes& packet, const nb::bytes& tables) {
    check_rank("rank", rank, group().size());
    shim::take_arrival(group(), rank, {packet.c_str(), packet.size()}, {tables.c_str(), tables.size()});
  }

  nb::bytes arrival(std::uint64_t sequence) const {
    const std::string packed = packed_arrival(member_->group, sequence);
    return nb::bytes(packed.data(), packed.size());
  }

  // What this rank waits for, where its program called, and for how many seconds; nothing where no wait takes long.
  std::optional<std::tuple<std::string, std::string, double>> note() const {
    const RankNote& note = member_->group.note(member_->group.rank());
    const std::int64_t since = note.waits_since.load();
    if (since == 0) return std::nullopt;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const double age = std::chrono::duration<double>(now - std::chrono::nanoseconds(since)).count();
    return std::tuple(note.waits_for.read(), note.waits_at.read(), age);
  }

  nb::bytes tables(std::uint64_t sequence) const {
    const std::string packed = packed_tables(member_->group, sequence);
    return nb::bytes(packed.data(), packed.size());
  }

  // Throws what it is when the group cannot be used, or a rank is gone.
  void check_present() {
    group().check_usable();
    for (int rank = 0; rank < group().size(); ++rank)
      if (rank != group().rank()) group().check_present(rank);
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

  Prepared send(nb::handle tensor, int peer, nb::handle tag, bool now) {
    Owners owners;
    const TensorArgument what = read_tensor(tensor, "tensor", owners);
    check_rank("peer", peer, member_->group.size());
    member_->group.check_usable();
    if (!now) return prepared(what, true, peer, tag_of(tag), owners);
    TransferTask task(member_->progress, what.tensor(), true, peer, tag_of(tag));
    wait_for(task, -1.0);
    return std::nullopt;
  }

  // Carried out `now`, it returns the rank that sent.
  std::variant<Work, int> receive(nb::handle tensor, std::optional<int> from, nb::handle tag, bool now) {
    Owners owners;
    const TensorArgument what = read_output(read_tensor, tensor, "tensor", owners);
    if (from) check_rank("peer", *from, member_->group.size());
    check_writable(what);
    member_->group.check_usable();
    const int peer = from.value_or(Transfer::any_rank);
    if (!now) return prepared(what, false, peer, tag_of(tag), owners);
    TransferTask task(member_->progress, what.tensor(), false, peer, tag_of(tag));
    carry_out(task, owners);
    return task.source_rank();
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
  void take_process(int rank, int pid, const std::string& address) {
    check_rank("rank", rank, group().size());
    shim::take_process(group(), rank, pid, address);
  }
  void mark_lost(int rank, const std::string& how) {
    check_rank("rank", rank, group().size());
    group().mark_lost(rank, how);
  }
  std::string address() const { return member_->group.note(member_->group.rank()).address.read(); }
  std::uint64_t sequence() const { return newest_call(member_->group, member_->group.rank()); }
  void leave(const std::string& why) {
    if (group().is_of_this_process()) group().leave(why);
  }
  double timeout() const { return member_->group.timeout(); }

  void refuse(const std::string& reason) {
    if (!member_->group.has_left()) member_->progress.refuse({reason, source_line()});
  }

  bool is_gone(int rank) const {
    check_rank("rank", rank, member_->group.size());
    return rank != member_->group.rank() && member_->group.is_gone(rank);
  }

  std::string ending_of(int rank) const {
    const Group& group = member_->group;
    check_rank("rank", rank, group.size());
    return rank != group.rank() && group.has_ended(rank) ? rank_label(group, rank) + group.ending_of(rank) : "";
  }

  // Of the ranks of one host in a group of several, which has the timeouts and tells what is waited for.
  void serve_larger_group() {
    group().is_part_of_another = true;
    group().set_timeout(longest_timeout);
  }
  bool is_usable() const { return member_->group.is_usable(); }
  void set_timeout(double seconds) { member_->group.set_timeout(seconds); }

  std::map<std::string, std::uint64_t> thresholds() const {
    const Thresholds& bytes = member_->group.thresholds();
    return {{"one_shot", bytes.one_shot}, {"lend", bytes.lend}, {"piece", bytes.piece},
            {"stream", bytes.stream},     {"swap", bytes.swap}, {"claim", bytes.claim}};
  }

  void close(const std::string& why) { member_->close(why); }

 private:
  Group& group() { return member_->group; }
  Seat seat() const { return {member_->group.rank(), member_->group.size()}; }

  Work prepared(const TensorArgument& what, bool is_send, int peer, std::int64_t tag, Owners& owners) {
    auto task = std::make_unique<TransferTask>(member_->progress, what.tensor(), is_send, peer, tag);
    return Work(member_, std::move(task), std::move(owners));
  }

  // Nothing is left to wait for when it is carried out `now`.
  Prepared made(std::unique_ptr<Operation> operation, Owners& owners, bool now) {
    member_->group.check_usable();
    if (now && carry_out(*member_, *operation, owners)) {
      owners.raise_versions();
      return std::nullopt;
    }
    auto task = std::make_unique<CollectiveTask>(member_->progress, std::move(operation));
    Work work(member_, std::move(task), std::move(owners));
    if (!now) return work;
    *work.call->task->place() = source_line();
    try {
      wait(work, -1.0);  // in the group's queue, as something is before it
    } catch (const nb::python_error&) {
      member_->group.give_up_interrupted();
      throw;
    }
    return std::nullopt;
  }

  std::shared_ptr<Member> member_;
};

nb::object exception_or_none(const Work& work) {
  const std::optional<Failure> failure = work.call->task->failure();
  return failure ? exception_of(*failure) : nb::none();
}

}  // namespace

NB_MODULE(_native, module) {
  refuse_subinterpreters();
  module.doc() = "The native engine for ranks on one host.";
  translate_failures();
#ifdef NDEBUG
  // What is alive at the end need not be an error of ours: a thread that waits holds its work, and so does the
  // traceback of a failed work in a future of torch's, where Python cannot collect it.
  nb::set_leak_warnings(false);
#endif
  module.def("set_reader_chooser", &set_reader_chooser, "chooser"_a,
             "Set the function that says how tensors of a type are read: shim.core.tensors.reader_for.");
  module.def("tensor_key", &tensor_key, "outputs"_a.none(), "inputs"_a.none(),
             "Bytes that are the same for tensors, or lists of them, of the same dtypes and shapes.");
  module.def("elements_digest", &elements_digest, "tensors"_a,
             "64 bits that stand for the elements of tensors, one after the other, in row-major order.");
  module.def("has_repeated", &has_repeated, "objects"_a, "Whether any object is in the list more than once.");

  module.attr("protocol_version") = protocol_version;
  define_process(module);
  define_shared_tensors(module);
  define_requests(module);
  define_call_records(module);
  module.def("note_ends", &note_ends, "Tell the frameworks of started calls that have ended.");

  nb::class_<Work>(module, "Work", "A prepared call; see shim.core.work.EngineWork.")
      .def("start", &start)
      .def("wait", &wait, "timeout"_a = -1.0)
      .def("hold_memory", [](Work& work) { work.call->owners.hold_memory(); })
      .def("read_before_others_write", &read_before_others_write, "others"_a)
      .def("is_completed", &is_completed)
      .def("exception", &exception_or_none)
      .def("source_rank", [](const Work& work) { return work.call->task->source_rank(); });

  nb::class_<PyGroup>(module, "Group", "One rank's membership of a group; see shim.core.engines.base.Engine.")
      .def(nb::init<std::string, std::string, std::vector<int>, int, double, const PyGroup*, Measurements,
                    const OriginFields&, const std::tuple<std::string, std::string>&, nb::object, const std::vector<int>&>(),
           "key"_a, "name"_a, "ranks"_a, "rank"_a, "timeout"_a, "parent"_a.none() = nb::none(),
           "measurements"_a.none() = nb::none(), "origin"_a = std::tuple("", "", false, false),
           "engine"_a = std::tuple("", ""), "carrier"_a.none() = nb::none(), "pids"_a = std::vector<int>())
      .def("broadcast", &PyGroup::broadcast, "tensor"_a.none(), "root"_a, "now"_a = false)
      .def("all_reduce", &PyGroup::all_reduce, "output"_a.none(), "input"_a.none(), "op"_a, "factor"_a, "now"_a = false)
      .def("reduce", &PyGroup::reduce, "output"_a.none(), "input"_a.none(), "op"_a, "factor"_a, "root"_a,
           "now"_a = false)
      .def("all_gather", &PyGroup::all_gather, "outputs"_a.none(), "input"_a.none(), "output_splits"_a.none(),
           "now"_a = false, "whole"_a = false)
      .def("gather", &PyGroup::gather, "outputs"_a.none(), "input"_a.none(), "output_splits"_a.none(), "root"_a,
           "now"_a = false)
      .def("scatter", &PyGroup::scatter, "output"_a.none(), "inputs"_a.none(), "input_splits"_a.none(), "root"_a,
           "now"_a = false)
      .def("reduce_scatter", &PyGroup::reduce_scatter, "output"_a.none(), "inputs"_a.none(), "input_splits"_a.none(),
           "op"_a, "factor"_a, "now"_a = false, "whole"_a = false)
      .def("all_to_all", &PyGroup::all_to_all, "outputs"_a.none(), "inputs"_a.none(), "output_splits"_a.none(),
           "input_splits"_a.none(), "now"_a = false, "whole"_a = false)
      .def("barrier", &PyGroup::barrier, "now"_a = false, "before"_a = "")
      .def("arrive", &PyGroup::arrive, "request"_a, "move"_a, "now"_a = false)
      .def("send", &PyGroup::send, "tensor"_a.none(), "peer"_a, "tag"_a, "now"_a = false)
      .def("receive", &PyGroup::receive, "tensor"_a.none(), "peer"_a.none(), "tag"_a, "now"_a = false)
      .def("refuse", &PyGroup::refuse, "reason"_a)
      // Of a group whose ranks share no memory: see group/carrier.hpp and group/mirror.hpp.
      .def("transfer", &PyGroup::transfer, "tensor"_a.none(), "is_send"_a, "peer"_a.none(), "tag"_a, "mover"_a,
           "now"_a = false)
      .def("take_arrivals", &PyGroup::take_arrivals, "packets"_a)
      .def("arrival", &PyGroup::arrival, "sequence"_a)
      .def("note", &PyGroup::note)
      .def("tables", &PyGroup::tables, "sequence"_a)
      .def("take_tables", &PyGroup::take_tables, "sequence"_a, "tables"_a)
      .def("take_arrival", &PyGroup::take_arrival, "rank"_a, "packet"_a, "tables"_a)
      .def("take_place", &PyGroup::take_place, "rank"_a, "sequence"_a, "place"_a)
      .def("take_note", &PyGroup::take_note, "rank"_a, "waits_for"_a, "waits_at"_a, "age"_a)
      .def("take_ending", &PyGroup::take_ending, "rank"_a, "state"_a, "cause"_a, "reason"_a, "has_left"_a)
      .def("take_process", &PyGroup::take_process, "rank"_a, "pid"_a, "address"_a)
      .def("mark_lost", &PyGroup::mark_lost, "rank"_a, "how"_a)
      .def("address", &PyGroup::address)
      .def("check_present", &PyGroup::check_present)
      .def("check_rank_present", &PyGroup::check_rank_present, "rank"_a)
      .def("give_up", &PyGroup::give_up, "why"_a)
      .def("sequence", &PyGroup::sequence)
      .def("leave", &PyGroup::leave, "why"_a = "")
      .def("timeout", &PyGroup::timeout)
      .def("is_gone", &PyGroup::is_gone, "rank"_a)
      .def("ending_of", &PyGroup::ending_of, "rank"_a)
      .def("is_usable", &PyGroup::is_usable)
      .def("set_timeout", &PyGroup::set_timeout, "seconds"_a)
      .def("thresholds", &PyGroup::thresholds)
      .def("serve_larger_group", &PyGroup::serve_larger_group)
      .def("close", &PyGroup::close, "why"_a = "");
}

}  // namespace shim::bindings
