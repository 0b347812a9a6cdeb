#include "group/descriptions.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>

#include "platform/steady_time.hpp"
#include "tensors/devices.hpp"

namespace shim {
namespace {

constexpr std::string_view kind_names[] = {"none",    "broadcast",      "all_reduce", "reduce",  "all_gather", "gather",
                                           "scatter", "reduce_scatter", "all_to_all", "barrier", "refused"};
static_assert(std::size(kind_names) == static_cast<std::size_t>(OperationKind::count_));

// Whether all numbers in it stand for something.
bool is_possible(const CallDescriptor& call) {
  return call.kind < OperationKind::count_ && static_cast<std::size_t>(call.dtype) < std::size(dtype_facts) &&
         call.op < ReduceOp::count_ && call.dimensions <= max_dimensions;
}

// Of `size` counts; a large group's are many.
std::string table_of(const std::uint64_t* counts, int size) {
  constexpr int most = 16;
  std::string text = "[";
  for (int i = 0; i < std::min(size, most); ++i) text += (i > 0 ? ", " : "") + std::to_string(counts[i]);
  return text + (size > most ? ", ...]" : "]");
}

std::string joined(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

std::string seconds_since(std::int64_t began_ns) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", static_cast<double>(steady_ns() - began_ns) * 1e-9);
  return text;
}

}  // namespace

std::string_view name_of(OperationKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

bool takes_root(OperationKind kind) {
  return kind == OperationKind::broadcast || kind == OperationKind::reduce || kind == OperationKind::gather ||
         kind == OperationKind::scatter;
}

bool takes_op(OperationKind kind) {
  return kind == OperationKind::all_reduce || kind == OperationKind::reduce || kind == OperationKind::reduce_scatter;
}

std::string shape_of(const CallDescriptor& call) {
  std::string text = "[";
  for (std::size_t d = 0; d < call.dimensions; ++d) text += (d > 0 ? ", " : "") + std::to_string(call.shape[d]);
  return text + "]";
}

std::string announced_by(const CallDescriptor& call) {
  const char* text = reinterpret_cast<const char*>(call.shape);
  std::string shown(text, ::strnlen(text, call.dimensions * sizeof(call.shape[0])));
  const auto is_shown = [](char byte) { return byte >= ' ' && byte <= '~'; };
  std::replace_if(shown.begin(), shown.end(), std::not_fn(is_shown), '?');  // a call that is being written over
  return shown;
}

std::string describe_call(const Group& group, int rank, std::uint64_t sequence) {
  const CallDescriptor call = group.call(rank, sequence);
  if (!is_possible(call)) return {};
  if (call.kind == OperationKind::refused) {
    const char* text = group.refusal(rank, sequence);
    const std::string_view reason(text, ::strnlen(text, refusal_bytes));
    return "refused: " + std::string(reason.substr(0, reason.find('\n')));
  }
  if (call.kind == OperationKind::barrier) {
    const std::string announced = announced_by(call);
    return announced.empty() ? "barrier()" : announced;
  }
  const std::uint64_t* counts = group.call_table(rank, sequence);
  const bool has_shape = call.kind != OperationKind::all_to_all;  // its parts are what it has to say
  std::string text(name_of(call.kind));
  text += "(";
  if (call.dtype != Dtype::none) text += std::string(name_of(call.dtype)) + (has_shape ? " " + shape_of(call) : "");
  if (call.device != 0) text += " on " + name_of_device_type(call.device);
  if (takes_op(call.kind)) text += ", " + std::string(name_of(call.op));
  if (takes_root(call.kind))
    text += ", root " + (call.root < group.size() ? rank_label(group, call.root).substr(5) : "?");
  if (call.sends == CallDescriptor::in_table)
    text += ", sends " + table_of(counts, group.size());
  else if (!has_shape)
    text += ", sends " + std::to_string(call.sends) + " to each";
  if (call.receives == CallDescriptor::in_table)
    text += ", receives " + table_of(counts + group.size(), group.size());
  else if (!has_shape)
    text += ", receives " + std::to_string(call.receives) + " from each";
  return text + ")";
}

std::string rank_label(const Group& group, int rank) {
  std::string label = "rank " + std::to_string(rank);
  if (group.world_rank(rank) != rank) label += " (rank " + std::to_string(group.world_rank(rank)) + " of the world)";
  return label;
}

std::string list_of_ranks(const Group& group, const std::vector<int>& ranks) {
  if (ranks.size() == 1) return rank_label(group, ranks[0]);
  std::vector<int> in_world;
  for (const int rank : ranks) in_world.push_back(group.world_rank(rank));
  return "ranks " + joined(ranks) + (in_world == ranks ? "" : " (ranks " + joined(in_world) + " of the world)");
}

std::uint64_t newest_call(const Group& group, int rank) {
  const auto number = [&](unsigned parity) {
    return group.arrival(rank, parity).sequence.load() & ~(withdrawing | withdrawn);
  };
  return std::max(number(0), number(1));
}

std::string noted_call(const Group& group, int rank) {
  const RankNote& note = group.note(rank);
  if (note.waits_since.load() == 0) return {};
  const std::string place = note.waits_at.read();
  return note.waits_for.read() + (place.empty() ? "" : ", at " + place);
}

std::string noted_wait(const Group& group, int rank) {
  const std::int64_t since = group.note(rank).waits_since.load();
  return since == 0 ? "" : "has waited " + seconds_since(since) + ": " + noted_call(group, rank);
}

std::string last_calls(const Group& group, int rank) {
  const std::uint64_t newest = newest_call(group, rank);
  std::string text;
  // The slot of the one before these may be written over already.
  for (std::uint64_t sequence = newest; sequence > 0 && newest - sequence < call_slots - 1; --sequence) {
    const std::string call = describe_call(group, rank, sequence);
    if (newest_call(group, rank) != newest) break;  // it goes on meanwhile
    text += (text.empty() ? "" : ", ") + std::to_string(sequence) + " " + call;
  }
  return text;
}

void note_awaited(const Group& group, const std::vector<int>& ranks) {
  RankNote& note = group.note(group.rank());
  for (auto& word : note.awaits) word.store(0);
  for (const int rank : ranks) note.awaits[static_cast<std::size_t>(rank) / 64].fetch_or(std::uint64_t{1} << rank % 64);
}

}  // namespace shim
