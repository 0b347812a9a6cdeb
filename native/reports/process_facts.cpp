#include "reports/process_facts.hpp"

#include <algorithm>
#include <sstream>

#include "group/descriptions.hpp"
#include "platform/socket_messages.hpp"
#include "reports/waits.hpp"

namespace shim {
namespace {

constexpr std::size_t most_groups = 32;  // in one answer
constexpr int most_gone = 8;             // ranks of a group

std::string json(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20)
      quoted += c;
    else
      quoted += c == '\n' ? "\\n" : " ";
  }
  return quoted + '"';
}

std::string list_of(const std::vector<int>& ranks) {
  std::string list;
  for (const int rank : ranks) list += (list.empty() ? "" : ",") + std::to_string(rank);
  return "[" + list + "]";
}

std::vector<int> world_ranks_of(const Group& group) {
  std::vector<int> ranks;
  for (int rank = 0; rank < group.size(); ++rank) ranks.push_back(group.world_rank(rank));
  return ranks;
}

// The group with the only wait that this process notes, where that holds up something; else null.
const Group* holding(const std::vector<Told>& groups) {
  const Group* only = nullptr;
  for (const Told& told : groups) {
    if (told.group->note(told.group->rank()).waits_since.load() == 0) continue;
    if (only != nullptr) return nullptr;
    only = told.group;
  }
  return only != nullptr && only->note(only->rank()).held.load() != Held::nothing ? only : nullptr;
}

std::string wait_in(const Group& group, bool holds) {
  const RankNote& note = group.note(group.rank());
  if (note.waits_since.load() == 0) return "null";
  return "{\"since\":" + std::to_string(note.waits_since.load()) +
         ",\"operation\":" + std::to_string(note.operation.load()) +
         ",\"where\":" + json(noted_where(group, group.rank())) +
         ",\"awaited\":" + list_of(awaited_by(group, group.rank())) +
         ",\"held\":" + std::to_string(holds ? static_cast<int>(note.held.load()) : 0) + "}";
}

std::string gone_from(const Group& group) {
  std::string gone;
  int told = 0;
  for (int rank = 0; rank < group.size() && told < most_gone; ++rank) {
    if (rank == group.rank() || !group.is_gone(rank)) continue;
    gone += (told++ > 0 ? "," : "") + std::string("{\"rank\":") + std::to_string(rank) +
            ",\"how\":" + json("rank " + std::to_string(rank) + group.peers().ending_of(rank)) +
            ",\"calls\":" + json(last_calls(group, rank)) + "}";
  }
  return "[" + gone + "]";
}

std::string facts_of(const Told& told, bool holds) {
  const Group& group = *told.group;
  return "{\"inode\":" + std::to_string(told.inode) + ",\"name\":" + json(group.name()) +
         ",\"engine\":" + json(group.engine) + ",\"rank\":" + std::to_string(group.rank()) +
         ",\"ranks\":" + list_of(world_ranks_of(group)) +
         ",\"timeout_ms\":" + std::to_string(static_cast<std::int64_t>(group.timeout() * 1e3)) +
         ",\"operation\":" + std::to_string(newest_call(group, group.rank())) +
         ",\"waits\":" + json(noted_wait(group, group.rank())) + ",\"waiting\":" + wait_in(group, holds) +
         ",\"calls\":" + json(last_calls(group, group.rank())) + ",\"gone\":" + gone_from(group) + "}";
}

}  // namespace

std::string facts_of_groups(const std::vector<Told>& groups) {
  std::string text = "{\"protocol\":" + std::to_string(protocol_version) + ",\"groups\":[";
  const Group* const holds = holding(groups);
  std::size_t told = 0;
  for (; told < std::min(groups.size(), most_groups); ++told) {
    const std::string next = (told > 0 ? "," : "") + facts_of(groups[told], groups[told].group == holds);
    if (text.size() + next.size() + 64 > max_message_bytes) break;
    text += next;
  }
  return text + "],\"more\":" + std::to_string(groups.size() - told) + "}";
}

std::string longest_wait(const std::vector<Told>& groups) {
  std::int64_t first = 0;
  const Group* longest = nullptr;
  for (const Told& told : groups) {
    const std::int64_t since = told.group->note(told.group->rank()).waits_since.load();
    if (since == 0 || (first != 0 && since >= first)) continue;
    first = since;
    longest = told.group;
  }
  if (longest == nullptr) return {};
  return noted_wait(*longest, longest->rank()) + " (of group '" + longest->name() + "')";
}

std::string wait_that_holds(const std::vector<Told>& groups) {
  const Group* const group = holding(groups);
  if (group == nullptr) return {};
  const RankNote& note = group->note(group->rank());
  const auto is_narrower = [](const Told& a, const Told& b) { return a.group->size() < b.group->size(); };
  const Group& widest = *std::max_element(groups.begin(), groups.end(), is_narrower)->group;
  std::string where = noted_where(*group, group->rank());
  std::replace(where.begin(), where.end(), '\n', ' ');
  std::string text = std::to_string(widest.rank()) + " " + std::to_string(note.waits_since.load()) + " " +
                     std::to_string(static_cast<int>(note.held.load())) + "\n" + where;
  for (const int rank : awaited_by(*group, group->rank())) text += "\n" + group->note(rank).address.read();
  return text;
}

std::optional<ProcessWait> parsed_wait(const std::string& text) {
  std::istringstream lines(text);
  ProcessWait wait;
  std::uint32_t held = 0;
  if (!(lines >> wait.rank >> wait.since >> held) || held == 0) return std::nullopt;
  wait.held = static_cast<Held>(held);
  std::string line;
  std::getline(lines, line);  // the rest of the numbers'
  std::getline(lines, wait.where);
  while (std::getline(lines, line))
    if (!line.empty()) wait.awaited.push_back(line);
  return wait;
}

}  // namespace shim
