#include "group/rank_notes.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "group/call_description.hpp"

namespace shim {
namespace {

using Clock = std::chrono::steady_clock;

std::string seconds_since(std::int64_t steady_ns) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", static_cast<double>(now - steady_ns) * 1e-9);
  return text;
}

}  // namespace

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
