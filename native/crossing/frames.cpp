#include "crossing/frames.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "collectives/exchange.hpp"
#include "group/descriptions.hpp"

namespace shim {
namespace {

// An arrival; behind it come its call, why that was refused, its tables, and its data.
struct Entry {
  std::uint64_t sequence, fingerprint, bytes;
  std::uint64_t data_bytes;
  std::uint32_t table_bytes;
  std::uint16_t call_bytes, refusal_bytes;
  std::uint8_t varied;
  SlotSize filled;
  std::byte payload[inline_bytes];
};

Failure no_arrival(const char* what) {
  return Failure(FailureKind::engine,
                 std::string("another host sent arrivals ") + what + "\nThe group can no longer be used.");
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  void take(void* to, std::size_t count) {
    if (count > bytes_.size()) throw no_arrival("that end too early");
    std::memcpy(to, bytes_.data(), count);
    bytes_.remove_prefix(count);
  }
  bool is_at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

std::size_t table_bytes(const Group& group) {
  return 2 * static_cast<std::size_t>(group.size()) * sizeof(std::uint64_t);
}

bool has_table(const CallDescriptor& call) {
  return call.sends == CallDescriptor::in_table || call.receives == CallDescriptor::in_table;
}

bool has_cells(OperationKind kind) {
  return kind == OperationKind::all_to_all || kind == OperationKind::reduce_scatter || kind == OperationKind::scatter;
}

// Calls take(place, bytes) for each piece of memory in which the ranks `to` read what `rank` gives them, as `slot` of
// its next step has it.
template <class Take>
void each_piece(const Group& group, int rank, std::uint64_t sequence, SlotSize slot, const std::vector<int>& to,
                const Take& take) {
  const CallDescriptor& call = group.call(rank, sequence);
  if (slot == SlotSize::none) return;
  if (!has_cells(call.kind)) {
    const bool is_for_root = call.kind == OperationKind::reduce || call.kind == OperationKind::gather;
    if (is_for_root && std::ranges::find(to, call.root) == to.end()) return;
    return take(group.ring_slot(rank, group.steps, slot), group.arrival(rank, sequence).bytes);
  }
  const std::size_t cell = cell_bytes(group, slot);
  for (const int peer : to) {
    const bool is_varied = call.sends == CallDescriptor::in_table;
    const std::uint64_t count = is_varied ? group.call_table(rank, sequence)[peer] : call.sends;
    const std::size_t bytes = bytes_of(call.dtype);
    if (bytes == 0 || count > cell / bytes) throw no_arrival("with more than a cell holds");
    take(group.ring_cell(rank, peer, group.steps, slot, cell), count * bytes);
  }
}

}  // namespace

std::string packed_arrivals(const Group& group, const std::vector<int>& from, const std::vector<int>& to,
                            std::uint64_t sequence) {
  std::string frame;
  for (const int rank : from) {
    const ArrivalLine& line = group.arrival(rank, sequence);
    const CallDescriptor& call = group.call(rank, sequence);
    const char* const refusal = group.refusal(rank, sequence);
    Entry entry;
    std::memset(static_cast<void*>(&entry), 0, sizeof(entry));
    entry.sequence = sequence;
    entry.fingerprint = line.fingerprint;
    entry.bytes = line.bytes;
    entry.varied = line.varied;
    entry.filled = line.filled;
    if (line.bytes <= inline_bytes) std::memcpy(entry.payload, line.payload, line.bytes);
    const std::size_t dimensions = std::min<std::size_t>(call.dimensions, max_dimensions);
    entry.call_bytes = static_cast<std::uint16_t>(offsetof(CallDescriptor, shape) + dimensions * sizeof(call.shape[0]));
    if (call.kind == OperationKind::refused)
      entry.refusal_bytes = static_cast<std::uint16_t>(::strnlen(refusal, refusal_bytes - 1));
    if (has_table(call)) entry.table_bytes = static_cast<std::uint32_t>(table_bytes(group));
    each_piece(group, rank, sequence, line.filled, to,
               [&entry](const std::byte*, std::size_t bytes) { entry.data_bytes += bytes; });
    const auto add = [&frame](const void* bytes, std::size_t count) {
      frame.insert(frame.end(), static_cast<const char*>(bytes), static_cast<const char*>(bytes) + count);
    };
    add(&entry, sizeof(entry));
    add(&call, entry.call_bytes);
    add(refusal, entry.refusal_bytes);
    add(group.call_table(rank, sequence), entry.table_bytes);
    each_piece(group, rank, sequence, line.filled, to, add);
  }
  return frame;
}

void take_arrivals(Group& group, const std::vector<int>& from, const std::vector<int>& to, std::uint64_t sequence,
                   std::string_view frame) {
  Reader reader(frame);
  for (const int rank : from) {
    Entry entry;
    reader.take(&entry, sizeof(entry));
    if (entry.sequence != sequence)
      throw no_arrival(
          ("at operation " + std::to_string(entry.sequence) + ", and not at " + std::to_string(sequence)).c_str());
    CallDescriptor& call = group.call(rank, sequence);
    if (entry.call_bytes < offsetof(CallDescriptor, shape) || entry.call_bytes > sizeof(call) ||
        entry.refusal_bytes >= refusal_bytes || entry.filled > SlotSize::large)
      throw no_arrival("with impossible sizes");
    std::memset(static_cast<void*>(&call), 0, sizeof(call));
    reader.take(&call, entry.call_bytes);
    if (call.kind >= OperationKind::count_ || call.op >= ReduceOp::count_ ||
        static_cast<std::size_t>(call.dtype) >= std::size(dtype_facts) ||
        static_cast<std::size_t>(call.dimensions) > max_dimensions ||
        entry.table_bytes != (has_table(call) ? table_bytes(group) : 0))
      throw no_arrival("with an impossible call");
    char* const refusal = group.refusal(rank, sequence);
    reader.take(refusal, entry.refusal_bytes);
    refusal[entry.refusal_bytes] = '\0';
    reader.take(group.call_table(rank, sequence), entry.table_bytes);
    ArrivalLine& line = group.arrival(rank, sequence);
    line.fingerprint = entry.fingerprint;
    line.bytes = entry.bytes;
    line.loan = 0;
    line.varied = entry.varied & 1;
    line.filled = entry.filled;
    std::memcpy(line.payload, entry.payload, inline_bytes);
    if (entry.filled == SlotSize::large && !group.reserve_rings())
      throw Failure(FailureKind::memory, "there is not enough memory for what ranks of other hosts give");
    const std::size_t room =
        entry.filled == SlotSize::large ? group.layout().large_slot_bytes() : std::size_t{small_slot_bytes};
    each_piece(group, rank, sequence, entry.filled, to, [&](std::byte* place, std::size_t bytes) {
      if (bytes > room) throw no_arrival("with more data than there is room for");
      reader.take(place, bytes);
    });
    // Nothing of it comes later.
    group.progress(rank).ready.store(group.steps + 1);
  }
  if (!reader.is_at_end()) throw no_arrival("with bytes left over");
  for (const int rank : from) group.arrival(rank, sequence).sequence.store(sequence);
}

}  // namespace shim
