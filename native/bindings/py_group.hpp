// A rank's membership of a group as Python calls it.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/calls/checked_calls.hpp"
#include "bindings/calls/requests.hpp"
#include "bindings/calls/work.hpp"
#include "bindings/interpreter/source_line.hpp"
#include "group/descriptions.hpp"
#include "meeting/rendezvous.hpp"
#include "reports/inquiries.hpp"

namespace shim::bindings {

namespace nb = nanobind;

inline std::int64_t tag_of(nb::handle tag) {
  int overflow = 0;
  const long value = PyLong_AsLongAndOverflow(tag.ptr(), &overflow);
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  if (overflow != 0 || (value != static_cast<std::int32_t>(value) && !Transfer::is_of_engine(value)))
    throw Failure(FailureKind::argument, std::string("{tag} must fit into 32 bits, got ") + nb::repr(tag).c_str());
  return value;
}

// One rank of a group.
class PyGroup {
 public:
  using Prepared = std::optional<Work>;

  PyGroup(std::string key, std::string name, std::vector<int> ranks, int rank, double timeout, const PyGroup* parent,
          Measurements measurements, const OriginFields& origin, const std::tuple<std::string, std::string>& engine) {
    if (ranks.size() > max_ranks)
      throw Failure(FailureKind::argument, "a group on one host must have at most " + std::to_string(max_ranks) +
                                               " ranks, got " + std::to_string(ranks.size()));
    timeout = std::min(timeout, longest_timeout);
    Meeting meeting{std::move(key), std::move(name), std::move(ranks), rank, timeout, std::move(measurements)};
    meeting.origin = std::make_from_tuple<Origin>(origin);
    std::tie(meeting.engine, meeting.engine_reason) = engine;
    member_ = Member::join(meeting, parent == nullptr ? nullptr : parent->member_.get());
  }

  // What is done with a checked call.
  auto carried_out(Owners& owners, bool now) {
    call_was_begun = false;
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

  Prepared reduce(nb::handle output, nb::handle input, nb::handle op, int root, double factor, bool now) {
    Owners owners;
    return checked_reduce(seat(), owners, output, input, op, root, factor, carried_out(owners, now));
  }

  Prepared all_gather(nb::handle outputs, nb::handle input, nb::handle output_splits, bool now, bool whole) {
    Owners owners;
    return checked_all_gather(seat(), owners, outputs, input, output_splits, whole, carried_out(owners, now));
  }

  Prepared gather(nb::handle outputs, nb::handle input, int root, nb::handle output_splits, bool now) {
    Owners owners;
    return checked_gather(seat(), owners, outputs, input, root, output_splits, carried_out(owners, now));
  }

  Prepared scatter(nb::handle output, nb::handle inputs, int root, nb::handle input_splits, bool now) {
    Owners owners;
    return checked_scatter(seat(), owners, output, inputs, root, input_splits, carried_out(owners, now));
  }

  Prepared reduce_scatter(nb::handle output, nb::handle inputs, nb::handle op, double factor, nb::handle input_splits,
                          bool now, bool whole) {
    Owners owners;
    return checked_reduce_scatter(seat(), owners, output, inputs, op, factor, input_splits, whole,
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

  void refuse(const std::string& reason) {
    if (!member_->group.has_left()) member_->progress.refuse({reason, source_line()});
  }

  void give_up(const std::string& why) {
    member_->group.record(Failure(FailureKind::engine, why + "\nThe group can no longer be used."));
  }

  bool is_gone(int rank) const {
    check_rank("rank", rank, member_->group.size());
    return rank != member_->group.rank() && member_->group.is_gone(rank);
  }

  bool has_left(int rank) const {
    check_rank("rank", rank, member_->group.size());
    return member_->group.peers().left_in_order(rank);
  }

  std::string ending_of(int rank) const {
    const Group& group = member_->group;
    check_rank("rank", rank, group.size());
    return rank != group.rank() && group.is_gone(rank) ? rank_label(group, rank) + group.peers().ending_of(rank) : "";
  }
  bool has_ended(int rank) const {
    check_rank("rank", rank, member_->group.size());
    return rank != member_->group.rank() && member_->group.peers().presence(rank) >= Presence::left;
  }

  // Of the ranks of one host in a group of several, which has the timeouts and tells what is waited for.
  void serve_larger_group() {
    group().is_part_of_another = true;
    Inquiries::forget(group());
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

 protected:
  // Of a group that is there.
  explicit PyGroup(std::shared_ptr<Member> member) : member_(std::move(member)) {}
  Group& group() const { return member_->group; }
  const std::shared_ptr<Member>& member() const { return member_; }

 private:
  Seat seat() const { return {member_->group.rank(), member_->group.size()}; }

  Work prepared(const TensorArgument& what, bool is_send, int peer, std::int64_t tag, Owners& owners) {
    auto task = std::make_unique<TransferTask>(member_->progress, what.tensor(), is_send, peer, tag);
    return Work(member_, std::move(task), std::move(owners));
  }

  // Nothing is left to wait for when it is carried out `now`.
  Prepared made(std::unique_ptr<Operation> operation, Owners& owners, bool now) {
    member_->group.check_usable();
    call_was_begun = now;
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

void define_group(nb::module_& module);
// Python's subclass for ranks that share no memory.
void define_carried_group(nb::module_& module);

}  // namespace shim::bindings
