// The Python module shim._native: groups and works. Arguments are checked here, with the GIL; engines know no Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <optional>
#include <variant>

#include "../collectives/collectives.hpp"
#include "../rendezvous.hpp"
#include "errors.hpp"
#include "interpreter.hpp"
#include "process.hpp"
#include "shared_memory.hpp"
#include "source_line.hpp"
#include "work.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace shim::bindings {
namespace {

constexpr double longest_timeout = 1e9;  // seconds; clocks do not overflow

// Of a member of shim.core.reduce_ops.ReduceOp; as an argument of type int it would be converted by way of a copy.
ReduceOp reduce_op_of(nb::handle op) {
  const long number = PyLong_AsLong(op.ptr());
  if (number == -1 && PyErr_Occurred()) throw nb::python_error();
  if (number < 0 || number >= static_cast<long>(ReduceOp::count_))
    throw Failure(FailureKind::argument, "{op} is not a reduce op: " + std::to_string(number));
  return static_cast<ReduceOp>(number);
}

int tag_of(nb::handle tag) {
  int overflow = 0;
  const long value = PyLong_AsLongAndOverflow(tag.ptr(), &overflow);
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  if (overflow != 0 || value != static_cast<std::int32_t>(value))
    throw Failure(FailureKind::argument, std::string("{tag} must fit into 32 bits, got ") + nb::repr(tag).c_str());
  return static_cast<int>(value);
}

void start(Work& work) {
  let_go_of_ended();
  if (std::string* place = work.task->place(); place != nullptr && !work.task->is_started()) *place = source_line();
  work.task->start();
}

void wait(Work& work, double timeout) {
  if (timeout >= 0 && !work.task->is_started()) start(work);
  wait_for(*work.task, timeout);
}

// One rank of a group.
class PyGroup {
 public:
  using Prepared = std::optional<Work>;

  PyGroup(std::string key, std::string name, std::vector<int> ranks, int rank, double timeout, const PyGroup* parent,
          Measurements measurements) {
    if (ranks.size() > max_ranks)
      throw Failure(FailureKind::argument, "a group on one host must have at most " + std::to_string(max_ranks) +
                                               " ranks, got " + std::to_string(ranks.size()));
    const Meeting meeting{
        std::move(key),         std::move(name), std::move(ranks), rank, std::min(timeout, longest_timeout),
        std::move(measurements)};
    member_ = Member::join(meeting, parent == nullptr ? nullptr : parent->member_.get());
  }

  Prepared broadcast(nb::handle tensor, int root, bool now) {
    Owners owners;
    return made(make_broadcast(seat(), read_tensor(tensor, "tensor", owners), root), owners, now);
  }

  Prepared all_reduce(nb::handle output, nb::handle input, nb::handle op, double factor, bool now) {
    Owners owners;
    const TensorArgument from = read_tensor(input, "input", owners);
    const TensorArgument to =
        output.is(input) ? TensorArgument{"output", from.single, {}, false} : read_tensor(output, "output", owners);
    return made(make_all_reduce(seat(), to, from, {reduce_op_of(op), factor}), owners, now);
  }

  Prepared reduce(nb::handle output, nb::handle input, nb::handle op, double factor, int root, bool now) {
    Owners owners;
    const TensorArgument from = read_tensor(input, "input", owners);
    const TensorArgument to = on_root(output, "output", root, owners, read_tensor);
    return made(make_reduce(seat(), to, from, {reduce_op_of(op), factor}, root), owners, now);
  }

  Prepared all_gather(nb::handle outputs, nb::handle input, nb::handle output_splits, bool now, bool whole) {
    Owners owners;
    const TensorArgument to = (whole ? read_whole : read_tensors)(outputs, "output", owners);
    const TensorArgument from = read_tensor(input, "input", owners);
    if (whole) check_whole(to, from, member_->group.size());
    return made(make_all_gather(seat(), to, from, read_splits(output_splits, "output_splits")), owners, now);
  }

  Prepared gather(nb::handle outputs, nb::handle input, nb::handle output_splits, int root, bool now) {
    Owners owners;
    const TensorArgument to = on_root(outputs, "output", root, owners, read_tensors);
    const TensorArgument from = read_tensor(input, "input", owners);
    return made(make_gather(seat(), to, from, read_splits(output_splits, "output_splits"), root), owners, now);
  }

  Prepared scatter(nb::handle output, nb::handle inputs, nb::handle input_splits, int root, bool now) {
    Owners owners;
    const TensorArgument to = read_tensor(output, "output", owners);
    const TensorArgument from = on_root(inputs, "input", root, owners, read_tensors);
    return made(make_scatter(seat(), to, from, read_splits(input_splits, "input_splits"), root), owners, now);
  }

  Prepared reduce_scatter(nb::handle output, nb::handle inputs, nb::handle input_splits, nb::handle op, double factor,
                          bool now, bool whole) {
    Owners owners;
    const TensorArgument to = read_tensor(output, "output", owners);
    const TensorArgument from = (whole ? read_whole : read_tensors)(inputs, "input", owners);
    if (whole) check_whole(from, to, member_->group.size());
    const SplitArgument splits = read_splits(input_splits, "input_splits");
    return made(make_reduce_scatter(seat(), to, from, splits, {reduce_op_of(op), factor}), owners, now);
  }

  Prepared all_to_all(nb::handle outputs, nb::handle inputs, nb::handle output_splits, nb::handle input_splits,
                      bool now, bool whole) {
    Owners owners;
    const auto read = whole ? read_whole : read_tensors;
    const TensorArgument to = read(outputs, "output", owners);
    const TensorArgument from = read(inputs, "input", owners);
    const SplitArgument to_splits = read_splits(output_splits, "output_splits");
    const SplitArgument from_splits = read_splits(input_splits, "input_splits");
    return made(make_all_to_all(seat(), to, from, to_splits, from_splits), owners, now);
  }

  Prepared barrier(bool now, const char* before) {
    Owners owners;
    return made(make_barrier(seat(), before), owners, now);
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
    const TensorArgument what = read_tensor(tensor, "tensor", owners);
    if (from) check_rank("peer", *from, member_->group.size());
    check_writable(what);
    member_->group.check_usable();
    const int peer = from.value_or(Transfer::any_rank);
    if (!now) return prepared(what, false, peer, tag_of(tag), owners);
    TransferTask task(member_->progress, what.tensor(), false, peer, tag_of(tag));
    try {
      wait_for(task, -1.0);
    } catch (...) {
      keep_while_exposed(task, owners);
      throw;
    }
    return task.source_rank();
  }

  void refuse(const std::string& reason) {
    if (!member_->group.has_left()) member_->progress.refuse({reason, source_line()});
  }

  bool is_gone(int rank) const {
    check_rank("rank", rank, member_->group.size());
    return rank != member_->group.rank() && member_->group.is_gone(rank);
  }

  bool has_ended(int rank) const {
    check_rank("rank", rank, member_->group.size());
    return rank != member_->group.rank() && member_->group.has_ended(rank);
  }
  bool is_usable() const { return member_->group.is_usable(); }

  std::map<std::string, std::uint64_t> thresholds() const {
    const Thresholds& bytes = member_->group.thresholds();
    return {
        {"one_shot", bytes.one_shot}, {"lend", bytes.lend}, {"piece", bytes.piece}, {"stream", bytes.stream},
        {"cross", bytes.cross},       {"swap", bytes.swap}, {"claim", bytes.claim}, {"cross_until", bytes.cross_until}};
  }

  void close(const std::string& why) { member_->close(why); }

 private:
  Seat seat() const { return {member_->group.rank(), member_->group.size()}; }

  Work prepared(const TensorArgument& what, bool is_send, int peer, int tag, Owners& owners) {
    auto task = std::make_unique<TransferTask>(member_->progress, what.tensor(), is_send, peer, tag);
    return Work(member_, std::move(task), std::move(owners));
  }

  // Nothing is left to wait for when it is carried out `now`.
  Prepared made(std::unique_ptr<Operation> operation, Owners& owners, bool now) {
    member_->group.check_usable();
    if (now && carry_out(*member_, *operation, owners)) return std::nullopt;
    auto task = std::make_unique<CollectiveTask>(member_->progress, std::move(operation));
    Work work(member_, std::move(task), std::move(owners));
    if (!now) return work;
    *work.task->place() = source_line();
    try {
      wait(work, -1.0);  // in the group's queue, as something is before it
    } catch (const nb::python_error&) {
      member_->group.give_up_interrupted();
      throw;
    }
    return std::nullopt;
  }

  // What only the root gives; on the other ranks it is not looked at.
  template <class Read>
  TensorArgument on_root(nb::handle object, std::string_view role, int root, Owners& owners, const Read& read) const {
    check_rank("root", root, member_->group.size());
    if (member_->group.rank() != root) return {role, std::nullopt, {}, false};
    if (object.is_none()) throw Failure(FailureKind::argument, "{" + std::string(role) + "} must be given on the root");
    return read(object, role, owners);
  }

  std::shared_ptr<Member> member_;
};

nb::object exception_or_none(const Work& work) {
  const std::optional<Failure> failure = work.task->failure();
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
  module.def("has_repeated", &has_repeated, "objects"_a, "Whether any object is in the list more than once.");

  module.attr("protocol_version") = protocol_version;
  define_process(module);
  define_shared_memory(module);

  nb::class_<Work>(module, "Work", "A prepared call; see shim.core.work.EngineWork.")
      .def("start", &start)
      .def("wait", &wait, "timeout"_a = -1.0)
      .def("is_completed", [](const Work& work) { return work.task->is_completed(); })
      .def("exception", &exception_or_none)
      .def("source_rank", [](const Work& work) { return work.task->source_rank(); });

  nb::class_<PyGroup>(module, "Group", "One rank's membership of a group; see shim.core.engines.base.Engine.")
      .def(nb::init<std::string, std::string, std::vector<int>, int, double, const PyGroup*, Measurements>(), "key"_a,
           "name"_a, "ranks"_a, "rank"_a, "timeout"_a, "parent"_a.none() = nb::none(),
           "measurements"_a.none() = nb::none())
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
      .def("send", &PyGroup::send, "tensor"_a.none(), "peer"_a, "tag"_a, "now"_a = false)
      .def("receive", &PyGroup::receive, "tensor"_a.none(), "peer"_a.none(), "tag"_a, "now"_a = false)
      .def("refuse", &PyGroup::refuse, "reason"_a)
      .def("is_gone", &PyGroup::is_gone, "rank"_a)
      .def("has_ended", &PyGroup::has_ended, "rank"_a)
      .def("is_usable", &PyGroup::is_usable)
      .def("thresholds", &PyGroup::thresholds)
      .def("close", &PyGroup::close, "why"_a = "");
}

}  // namespace shim::bindings
