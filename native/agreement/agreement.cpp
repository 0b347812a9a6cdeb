#include "agreement/agreement.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agreement/call_places.hpp"
#include "group/descriptions.hpp"
#include "tensors/devices.hpp"

namespace shim {
namespace {

// The calls of all ranks for one operation.
class Calls {
 public:
  Calls(const Group& group, std::uint64_t sequence) : group_(group), sequence_(sequence) {}

  const Group& group() const { return group_; }
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
      if (of(rank).sends == CallDescriptor::in_table || of(rank).receives == CallDescriptor::in_table) return true;
    return false;
  }
  // Whether `to` is to get something of `from`. What a rank that takes no part would say of it is not asked.
  bool is_part(int from, int to) const {
    const CallDescriptor& call = of(0);
    const bool from_root = call.kind == OperationKind::broadcast || call.kind == OperationKind::scatter;
    const bool to_root = call.kind == OperationKind::reduce || call.kind == OperationKind::gather;
    return !(from_root && from != call.root) && !(to_root && to != call.root);
  }

 private:
  const Group& group_;
  std::uint64_t sequence_;
};

template <class Field>
bool all_equal(const Calls& calls, const Field& field) {
  for (int rank = 1; rank < calls.size(); ++rank)
    if (field(calls.of(rank)) != field(calls.of(0))) return false;
  return true;
}

// What calls may differ in, and what one of them says of it.
struct Aspect {
  std::string_view name;
  std::string (*said)(const CallDescriptor&);
};

bool is_refused(const CallDescriptor& call) { return call.kind == OperationKind::refused; }

constexpr Aspect whether_made{"whether the call can be made", [](const CallDescriptor& call) {
                                return std::string(is_refused(call) ? "refused" : "made");
                              }};
constexpr Aspect operation{"the operation", [](const CallDescriptor& call) {
                             const bool is_barrier = call.kind == OperationKind::barrier;
                             const std::string announced = is_barrier ? announced_by(call) : "";
                             return announced.empty() ? std::string(name_of(call.kind)) : announced;
                           }};
constexpr Aspect device{"where the tensors are",
                        [](const CallDescriptor& call) { return name_of_device_type(call.device); }};
constexpr Aspect dtype{"the dtype", [](const CallDescriptor& call) { return std::string(name_of(call.dtype)); }};
constexpr Aspect reduce_op{"the reduce op", [](const CallDescriptor& call) { return std::string(name_of(call.op)); }};
constexpr Aspect root{"the root", [](const CallDescriptor& call) { return std::to_string(call.root); }};
constexpr Aspect shape{"the shape", shape_of};
constexpr Aspect parts{"the sizes of the parts", nullptr};  // of which each is said by two ranks

bool same_shape(const Calls& calls) {
  return all_equal(calls, [](const CallDescriptor& call) { return call.dimensions; }) &&
         all_equal(calls, [](const CallDescriptor& call) {
           return std::string_view(reinterpret_cast<const char*>(call.shape), call.dimensions * sizeof(call.shape[0]));
         });
}

// Whether each part has the size that its receiver expects.
bool same_counts(const Calls& calls) {
  for (int from = 0; from < calls.size(); ++from)
    for (int to = 0; to < calls.size(); ++to)
      if (calls.is_part(from, to) && calls.sends(from, to) != calls.receives(to, from)) return false;
  return true;
}

// The first thing the ranks disagree on, or null.
const Aspect* difference(const Calls& calls) {
  if (!all_equal(calls, is_refused) || is_refused(calls.of(0))) return &whether_made;
  if (!all_equal(calls, [](const CallDescriptor& call) { return call.kind; })) return &operation;
  if (!all_equal(calls, [](const CallDescriptor& call) { return call.device; })) return &device;
  const OperationKind kind = calls.of(0).kind;
  if (!all_equal(calls, [](const CallDescriptor& call) { return call.dtype; })) return &dtype;
  if (takes_op(kind) && !all_equal(calls, [](const CallDescriptor& call) { return call.op; })) return &reduce_op;
  if (takes_root(kind) && !all_equal(calls, [](const CallDescriptor& call) { return call.root; })) return &root;
  if (kind != OperationKind::all_to_all && !calls.any_varied() && !same_shape(calls))
    return kind == OperationKind::barrier ? &operation : &shape;
  if (!same_counts(calls)) return &parts;
  return nullptr;
}

// "[3] on ranks 0 and 2, [4] on rank 1": who agrees with whom.
std::string who_says_what(const Calls& calls, const Aspect& aspect) {
  std::vector<std::pair<std::string, std::vector<int>>> camps;
  for (int rank = 0; rank < calls.size(); ++rank) {
    const std::string said = aspect.said(calls.of(rank));
    auto camp = std::find_if(camps.begin(), camps.end(), [&said](const auto& one) { return one.first == said; });
    if (camp == camps.end()) camp = camps.insert(camps.end(), {said, {}});
    camp->second.push_back(rank);
  }
  std::string text;
  for (const auto& [said, ranks] : camps)
    text += (text.empty() ? "" : ", ") + said + " on " + list_of_ranks(calls.group(), ranks);
  return text;
}

// The first parts, by sender, of which sender and receiver say different sizes.
std::string parts_that_differ(const Calls& calls) {
  constexpr int most = 3;
  int found = 0;
  std::string text;
  for (int from = 0; from < calls.size(); ++from)
    for (int to = 0; to < calls.size(); ++to) {
      if (!calls.is_part(from, to) || calls.sends(from, to) == calls.receives(to, from)) continue;
      if (++found > most) continue;
      text += (text.empty() ? "" : "; ") + rank_label(calls.group(), from) + " sends " +
              std::to_string(calls.sends(from, to)) + " elements to " + rank_label(calls.group(), to) +
              ", which expects " + std::to_string(calls.receives(to, from));
    }
  return found > most ? text + "; and " + std::to_string(found - most) + " more" : text;
}

}  // namespace

void check_agreement(Group& group, std::uint64_t sequence) {
  const Calls calls(group, sequence);
  const Aspect* aspect = difference(calls);
  if (aspect == nullptr) return;
  if (WaitHooks* hooks = WaitHooksScope::current()) {
    tell_place(group, sequence, hooks->place());
    hooks->about_to_block();
  } else {
    tell_place(group, sequence, "");
  }
  const std::vector<std::string> places = places_of_calls(group, sequence);
  std::string message = "the ranks disagree on " + std::string(aspect->name) + " in operation " +
                        std::to_string(sequence) + " of the group";
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::string& place = places[static_cast<std::size_t>(rank)];
    message += "\n  " + rank_label(group, rank) + ": " + describe_call(group, rank, sequence) +
               (place.empty() ? "" : ", at " + place) + (rank == group.rank() ? "  <- this rank" : "");
  }
  message += "\nThey differ: " + (aspect == &parts ? parts_that_differ(calls) : who_says_what(calls, *aspect)) + ".";
  throw Failure(FailureKind::mismatch, message + "\nNo output was written; the group can still be used.");
}

}  // namespace shim
