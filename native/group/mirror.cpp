#include "group/mirror.hpp"

#include "platform/steady_time.hpp"

namespace shim {

void take_arrival(const Group& group, int rank, std::uint64_t sequence) {
  if (!group.is_here(rank)) group.elsewhere(rank).arrived.store(sequence);
}

void take_place(const Group& group, int rank, std::uint64_t sequence, std::string_view place) {
  if (group.is_here(rank)) return;
  CallPlace& theirs = group.call_place(rank, sequence);
  theirs.text.write(place);
  theirs.sequence.store(sequence);
}

void take_note(const Group& group, int rank, std::string_view waits_for, std::string_view waits_at,
               std::int64_t since_ns) {
  if (group.is_here(rank)) return;
  RankNote& note = group.note(rank);
  if (waits_for.empty()) return note.waits_since.store(0);
  note.waits_for.write(waits_for);
  note.waits_at.write(waits_at);
  note.waits_since.store(steady_ns() - since_ns);
}

}  // namespace shim
