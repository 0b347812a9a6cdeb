#include "agreement.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace shim {
namespace {

constexpr std::string_view kind_names[] = {"none",    "broadcast",      "all_reduce", "reduce",  "all_gather", "gather",
                                           "scatter", "reduce_scatter", "all_to_all", "barrier", "refused"};
static_assert(std::size(kind_names) == static_cast<std::size_t>(OperationKind::count_));

bool takes_root(OperationKind kind) {
  return kind == OperationKind::broadcast || kind == OperationKind::reduce || kind == OperationKind::gather ||
         kind == OperationKind::scatter;
}

bool takes_op(OperationKind kind) {
  return kind == OperationKind::all_reduce || kind == OperationKind::reduce || kind == OperationKind::reduce_scatter;
}

// The calls of all ranks for one operation.
class Calls {
 public:
  Calls(const Group& group, std::uint64_t sequence) : group_(group), sequence_(sequence) {}

  int size() const { return group_.size(); }
  const CallDescriptor& of(int rank) const { return group_.call(rank, sequence_); }

  std::uint64_t sends(int from, int to) const {
    const std::uint64_t count = of(from).sends;
    return count == CallDescriptor::in_table ? group_.call_table(from, sequence_)[to] : count;
  }
  std::uint64_t receives(int to, int from) const {
    const std::uint64_t count = of(to).receives;
    return count == CallDescriptor::in_table ? group_.call_table(to, sequence_)[size() + from] : count;
  }
  bool any_varied() const {
    for (int rank = 0; rank < size(); ++rank)
      if (group_.arrival(rank, sequence_).varied != 0) return true;
    return false;
  }
  // One line: all_reduce(float32 [2, 3], SUM)
  std::string describe(int rank) const {
    const CallDescriptor& call = of(rank);
    if (call.kind == OperationKind::refused) {
      const char* text = group_.refusal(rank, sequence_);
      const std::string_view reason(text, ::strnlen(text, refusal_bytes));
      return "refused: " + std::string(reason.substr(0, reason.find('\n')));
    }
    std::string text(kind_names[static_cast<std::size_t>(call.kind)]);
    text += "(";
    const bool has_shape = call.kind != OperationKind::all_to_all;  // its parts are what it has to say
    if (call.dtype != Dtype::none) text += std::string(name_of(call.dtype)) + (has_shape ? " " + shape(call) : "");
    if (takes_op(call.kind)) text += ", " + std::string(name_of(call.op));
    if (takes_root(call.kind)) text += ", root " + std::to_string(call.root);
    if (call.sends == CallDescriptor::in_table)
      text += ", sends " + table(rank, 0);
    else if (!has_shape)
      text += ", sends " + std::to_string(call.sends) + " to each";
    if (call.receives == CallDescriptor::in_table)
      text += ", receives " + table(rank, size());
    else if (!has_shape)
      text += ", receives " + std::to_string(call.receives) + " from each";
    return text + ")";
  }

 private:
  static std::string shape(const CallDescriptor& call) {
    std::string text = "[";
    for (std::size_t d = 0; d < call.dimensions; ++d) text += (d > 0 ? ", " : "") + std::to_string(call.shape[d]);
    return text + "]";
  }
  std::string table(int rank, int first) const {
    std::string text = "[";
    for (int i = 0; i < size(); ++i)
      text += (i > 0 ? ", " : "") + std::to_string(group_.call_table(rank, sequence_)[first + i]);
    return text + "]";
  }

  const Group& group_;
  std::uint64_t sequence_;
};

template <class Field>
bool all_equal(const Calls& calls, const Field& field) {
  for (int rank = 1; rank < calls.size(); ++rank)
    if (field(calls.of(rank)) != field(calls.of(0))) return false;
  return true;
}

bool same_shape(const Calls& calls) {
  return all_equal(calls, [](const CallDescriptor& call) { return call.dimensions; }) &&
         all_equal(calls, [](const CallDescriptor& call) {
           return std::string_view(reinterpret_cast<const char*>(call.shape), call.dimensions * sizeof(call.shape[0]));
         });
}

// Whether each part has the size that its receiver expects. What a rank that takes no part would say is not asked.
bool same_counts(const Calls& calls) {
  const CallDescriptor& call = calls.of(0);
  const bool from_root = call.kind == OperationKind::broadcast || call.kind == OperationKind::scatter;
  const bool to_root = call.kind == OperationKind::reduce || call.kind == OperationKind::gather;
  for (int from = 0; from < calls.size(); ++from)
    for (int to = 0; to < calls.size(); ++to) {
      if ((from_root && from != call.root) || (to_root && to != call.root)) continue;
      if (calls.sends(from, to) != calls.receives(to, from)) return false;
    }
  return true;
}

// The first thing the ranks disagree on, or nothing.
std::string_view difference(const Calls& calls) {
  if (!all_equal(calls, [](const CallDescriptor& call) { return call.kind == OperationKind::refused; }) ||
      calls.of(0).kind == OperationKind::refused)
    return "whether the call can be made";
  if (!all_equal(calls, [](const CallDescriptor& call) { return call.kind; })) return "the operation";
  const OperationKind kind = calls.of(0).kind;
  if (!all_equal(calls, [](const CallDescriptor& call) { return call.dtype; })) return "the dtype";
  if (takes_op(kind) && !all_equal(calls, [](const CallDescriptor& call) { return call.op; })) return "the reduce op";
  if (takes_root(kind) && !all_equal(calls, [](const CallDescriptor& call) { return call.root; })) return "the root";
  if (kind != OperationKind::all_to_all && !calls.any_varied() && !same_shape(calls)) return "the shape";
  if (!same_counts(calls)) return "the sizes of the parts";
  return {};
}

}  // namespace

void check_agreement(Group& group, std::uint64_t sequence) {
  const Calls calls(group, sequence);
  const std::string_view what = difference(calls);
  if (what.empty()) return;
  std::string message =
      "the ranks disagree on " + std::string(what) + " in operation " + std::to_string(sequence) + " of the group";
  for (int rank = 0; rank < group.size(); ++rank) {
    message += "\n  rank " + std::to_string(rank);
    if (group.world_rank(rank) != rank)
      message += " (rank " + std::to_string(group.world_rank(rank)) + " of the world)";
    message += ": " + calls.describe(rank) + (rank == group.rank() ? "  <- this rank" : "");
  }
  throw Failure(FailureKind::mismatch, message + "\nNo output was written; the group can still be used.");
}

}  // namespace shim
