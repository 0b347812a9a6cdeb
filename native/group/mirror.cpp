#include "group/mirror.hpp"

#include <chrono>
#include <cstddef>
#include <cstring>
#include <mutex>

#include "group/descriptions.hpp"
#include "platform/steady_time.hpp"

namespace shim {
namespace {

// An arrival with all that a rank's call needs to be compared and shown, but for its tables.
struct Packet {
  std::uint64_t sequence;
  std::uint64_t bytes;
  std::uint64_t varied;
  std::byte payload[inline_bytes];
  CallDescriptor call;
  char refusal[refusal_bytes];
};

std::mutex taking;  // of arrivals, which come in an exchange and in a note

Packet parsed(std::string_view bytes) {
  Packet packet;
  if (bytes.size() != sizeof(packet)) throw Failure(FailureKind::engine, "a rank's arrival has another size");
  std::memcpy(static_cast<void*>(&packet), bytes.data(), sizeof(packet));
  return packet;
}

bool has_table(const CallDescriptor& call) {
  return call.sends == CallDescriptor::in_table || call.receives == CallDescriptor::in_table;
}

// All but the sequence, without which nobody reads it.
void write_call(Group& group, int rank, const Packet& packet) {
  std::memcpy(static_cast<void*>(&group.call(rank, packet.sequence)), &packet.call, sizeof(packet.call));
  std::memcpy(group.refusal(rank, packet.sequence), packet.refusal, refusal_bytes);
  ArrivalLine& line = group.arrival(rank, packet.sequence);
  line.bytes = packet.bytes;
  line.fingerprint = 0;  // the calls themselves are compared
  line.varied = packet.varied;
  line.filled = SlotSize::none;
  line.loan = 0;
  std::memcpy(line.payload, packet.payload, inline_bytes);
}

void write_tables(Group& group, int rank, std::uint64_t sequence, std::string_view tables) {
  const std::size_t bytes = 2 * static_cast<std::size_t>(group.size()) * sizeof(std::uint64_t);
  if (tables.size() != bytes) throw Failure(FailureKind::engine, "the tables of a rank's call have another size");
  std::memcpy(group.call_table(rank, sequence), tables.data(), bytes);
}

bool is_known(const Group& group, int rank, std::uint64_t sequence) {
  return group.arrival(rank, sequence).sequence.load() >= sequence;
}

void publish(Group& group, int rank, std::uint64_t sequence) { group.arrival(rank, sequence).sequence.store(sequence); }

void wake(const Group& group) { group.ring_bell(group.rank()); }

}  // namespace

std::size_t packed_arrival_bytes() { return sizeof(Packet); }

std::string packed_arrival(const Group& group, std::uint64_t sequence) {
  Packet packet;
  std::memset(static_cast<void*>(&packet), 0, sizeof(packet));
  const ArrivalLine& line = group.arrival(group.rank(), sequence);
  packet.sequence = sequence;
  packet.bytes = line.bytes;
  packet.varied = line.varied;
  std::memcpy(packet.payload, line.payload, inline_bytes);
  const CallDescriptor& call = group.call(group.rank(), sequence);
  std::memcpy(static_cast<void*>(&packet.call), &call, sizeof(call));
  if (call.kind == OperationKind::refused)
    std::memcpy(packet.refusal, group.refusal(group.rank(), sequence), refusal_bytes);
  return {reinterpret_cast<const char*>(&packet), sizeof(packet)};
}

std::string packed_tables(const Group& group, std::uint64_t sequence) {
  return {reinterpret_cast<const char*>(group.call_table(group.rank(), sequence)),
          2 * static_cast<std::size_t>(group.size()) * sizeof(std::uint64_t)};
}

bool take_arrivals(Group& group, const std::vector<std::string_view>& packets) {
  const std::lock_guard lock(taking);
  const std::uint64_t sequence = parsed(packets.at(static_cast<std::size_t>(group.rank()))).sequence;
  std::vector<Packet> arrivals;
  bool needs_tables = false;
  for (const std::string_view bytes : packets) {
    const Packet packet = parsed(bytes);
    if (packet.sequence != sequence)
      throw Failure(FailureKind::engine, "the ranks are at different operations, " + std::to_string(sequence) +
                                             " and " + std::to_string(packet.sequence) +
                                             "\nThe group can no longer be used.");
    needs_tables = needs_tables || has_table(packet.call);
    arrivals.push_back(packet);
  }
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank() || is_known(group, rank, sequence)) continue;
    write_call(group, rank, arrivals[static_cast<std::size_t>(rank)]);
    if (!needs_tables) publish(group, rank, sequence);
  }
  if (!needs_tables) wake(group);
  return !needs_tables;
}

void take_tables(Group& group, std::uint64_t sequence, const std::vector<std::string_view>& tables) {
  const std::lock_guard lock(taking);
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank() || is_known(group, rank, sequence)) continue;
    write_tables(group, rank, sequence, tables.at(static_cast<std::size_t>(rank)));
    publish(group, rank, sequence);
  }
  wake(group);
}

void take_arrival(Group& group, int rank, std::string_view bytes, std::string_view tables) {
  const std::lock_guard lock(taking);
  const Packet packet = parsed(bytes);
  // Of the operation after the one that this rank has arrived at, at most: the slots of the others are in use.
  if (is_known(group, rank, packet.sequence) || packet.sequence > newest_call(group, group.rank()) + 1) return;
  write_call(group, rank, packet);
  write_tables(group, rank, packet.sequence, tables);
  publish(group, rank, packet.sequence);
  wake(group);
}

void take_place(Group& group, int rank, std::uint64_t sequence, std::string_view place) {
  CallPlace& theirs = group.call_place(rank, sequence);
  theirs.text.write(place);
  theirs.sequence.store(sequence);
}

void take_note(Group& group, int rank, std::string_view waits_for, std::string_view waits_at, std::int64_t since_ns) {
  RankNote& note = group.note(rank);
  if (waits_for.empty()) return note.waits_since.store(0);
  note.waits_for.write(waits_for);
  note.waits_at.write(waits_at);
  note.waits_since.store(steady_ns() - since_ns);
}

}  // namespace shim
