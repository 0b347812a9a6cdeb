#include "agreement/arrival.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "agreement/agreement.hpp"
#include "agreement/call_places.hpp"
#include "group/loans.hpp"
#include "machine/prefetch.hpp"
#include "platform/fault_points.hpp"

namespace shim {
namespace {

// Only to measure what the agreement costs, in a build without it: see benchmarks/agreement_cost.py.
#if defined(SHIM_WITHOUT_AGREEMENT)
constexpr bool calls_are_compared = false;
#else
constexpr bool calls_are_compared = true;
#endif

// From so many bytes on the calls are compared whole, which takes no time beside moving the data.
constexpr std::size_t compared_whole = small_slot_bytes;

// In place of the number of dimensions, where the counts of all ranks follow.
constexpr std::uint64_t of_table = 0xff;
static_assert(max_dimensions < of_table);

// Every rank of such an operation contributes as many bytes.
bool contributes_alike(const Call& call) {
  const OperationKind kind = call.descriptor.kind;
  return kind != OperationKind::broadcast && kind != OperationKind::scatter && !call.has_common_table();
}

// Copies what is in use of the descriptor and its tables: the fewer lines change, the fewer have to come to the others.
void write_call(Group& group, std::uint64_t sequence, const Call& call) {
  CallDescriptor& mine = group.call(group.rank(), sequence);
  std::memcpy(static_cast<void*>(&mine), &call.descriptor,
              offsetof(CallDescriptor, shape));  // whose size the compiler knows
  for (std::size_t d = 0; d < call.descriptor.dimensions; ++d) mine.shape[d] = call.descriptor.shape[d];
  if (call.is_varied()) {
    std::uint64_t* table = group.call_table(group.rank(), sequence);
    std::copy(call.sends.begin(), call.sends.end(), table);
    std::copy(call.receives.begin(), call.receives.end(), table + group.size());
  }
  if (call.descriptor.kind != OperationKind::refused) return;
  char* text = group.refusal(group.rank(), sequence);
  text[copy_fitting(call.refusal->reason, text, refusal_bytes - 1)] = '\0';
  tell_place(group, sequence, call.refusal->place);
}

void publish(Group& group, std::uint64_t sequence, const Call& call, const Contribution* contribution) {
  const std::size_t bytes = contribution == nullptr ? 0 : contribution->contributed_bytes();
  const std::uint16_t loan = contribution == nullptr ? 0 : contribution->lend(group, sequence);
  // Across hosts nothing comes later, of parts that differ in size not even the smallest.
  const std::size_t in_line = group.carrier != nullptr && call.is_varied() ? 0 : inline_bytes;
  const bool may_fill = bytes > in_line && loan == 0;
  const SlotSize filled = may_fill ? contribution->fill_first_slot(group) : SlotSize::none;
  if constexpr (calls_are_compared) write_call(group, sequence, call);
  ArrivalLine& line = group.arrival(group.rank(), sequence);
  line.fingerprint = calls_are_compared ? fingerprint_of(call, group.hash()) : 0;
  line.bytes = bytes;
  line.loan = loan;
  line.varied = call.is_varied() && !call.has_common_table() ? 1 : 0;
  line.filled = filled;
  if (bytes > 0 && bytes <= inline_bytes) contribution->write_contribution(line.payload);
  group.tell_processor();
  fault_point("before_arrival");
  line.sequence.exchange(sequence);
  group.ring_bells();
  fault_point("after_arrival");
  if (group.carrier != nullptr && call.descriptor.kind == OperationKind::refused) group.carrier->refused(sequence);
}

void wait_for_arrivals(Group& group, std::uint64_t sequence) {
  const auto arrived = [&group, sequence](int rank) {
    return group.arrival(rank, sequence).sequence.load() >= sequence;
  };
  if (group.carrier == nullptr) {
    for (int peer = 0; peer < group.size(); ++peer)
      if (peer != group.rank()) group.wait_for(peer, arrived);
  } else {  // in one wait; that of the leader brings the others, and without it they do not come
    group.wait_for(group.rank(), [&group, &arrived, sequence](int rank) {
      if (rank != group.rank() && rank != group.leader()) return arrived(rank);
      if (group.rank() == group.leader()) return group.carrier->exchange(sequence);
      for (int peer = 0; peer < group.size(); ++peer)
        if (!arrived(peer)) return false;
      return true;
    });
  }
  group.confirmed = sequence;
  group.steps_over = group.steps;  // who has arrived has ended the operation before
}

// Of two ranks: a few lines of the other's slot come while the calls are compared. Of more, the processor fetches what
// follows by itself, and sooner where it is read from the beginning.
void fetch_small_slot(const Group& group, std::uint64_t sequence) {
  constexpr std::size_t most = 512;
  if (group.size() != 2) return;
  const int other = 1 - group.rank();
  const ArrivalLine& line = group.arrival(other, sequence);
  if (line.filled != SlotSize::none && line.bytes <= most)
    prefetch_to_read(group.ring_slot(other, group.steps, line.filled), line.bytes);
}

// A rank may arrive at an operation only when all have arrived at the one before, because the slots of the one
// before that are used again. Operations wait for that themselves; a refused call did not.
std::uint64_t next_sequence(Group& group) {
  group.check_usable();
  if (group.confirmed < group.sequence) wait_for_arrivals(group, group.sequence);
  group.given = {};
  return ++group.sequence;
}

// Where the ranks share no memory: of an operation that another rank has given up, its arrival may still come here.
void check_nobody_is_gone(Group& group) {
  group.check_usable();
  for (int rank = 0; rank < group.size(); ++rank)
    if (rank != group.rank() && !group.peers().left_in_order(rank)) group.check_present(rank);
}

bool have_all_arrived(const Group& group) {
  for (int rank = 0; rank < group.size(); ++rank)
    if (group.arrival(rank, group.sequence).sequence.load() < group.sequence) return false;
  return true;
}

// Takes no memory: a rank that had none for its call can still tell the others.
Call refused_call(const Refusal& refusal) {
  Call call(OperationKind::refused, Dtype::none);
  call.refusal = &refusal;
  return call;
}

}  // namespace

std::uint64_t fingerprint_of(const Call& call, const KeyedHash& hash) {
  const CallDescriptor& said = call.descriptor;
  const std::size_t dimensions = call.has_common_table() ? 0 : said.dimensions;
  const std::uint64_t layout = call.has_common_table() ? of_table : dimensions;
  KeyedHash::Sum sum(hash);
  sum.add(static_cast<std::uint64_t>(said.kind) | static_cast<std::uint64_t>(said.dtype) << 8 |
          static_cast<std::uint64_t>(said.op) << 16 | layout << 24 |
          static_cast<std::uint64_t>(static_cast<std::uint16_t>(said.root)) << 32 |
          static_cast<std::uint64_t>(static_cast<std::uint16_t>(said.device)) << 48);
  if (call.has_common_table()) {
    for (const std::uint64_t count : call.receives) sum.add(count);
  } else {
    sum.add(said.sends);
    sum.add(said.receives);
  }
  for (std::size_t d = 0; d < dimensions; ++d) sum.add(static_cast<std::uint64_t>(said.shape[d]));
  return sum.value();
}

void Call::set_before(std::string_view text) {
  constexpr std::size_t each = sizeof(descriptor.shape[0]);
  const std::size_t dimensions = (std::min(text.size(), sizeof(descriptor.shape)) + each - 1) / each;
  descriptor.dimensions = static_cast<std::uint8_t>(dimensions);
  std::fill_n(descriptor.shape, dimensions, 0);
  copy_fitting(text, reinterpret_cast<char*>(descriptor.shape), sizeof(descriptor.shape));
}

void Call::set_shape(const TensorView& view) {
  descriptor.dimensions = static_cast<std::uint8_t>(view.dimensions);
  std::copy_n(view.shape.begin(), view.dimensions, descriptor.shape);
}

void Call::set_sends(const Counts& counts) {
  descriptor.sends = counts.are_equal() ? counts[0] : CallDescriptor::in_table;
  sends = counts.by_rank();
}

void Call::set_receives(const Counts& counts) {
  descriptor.receives = counts.are_equal() ? counts[0] : CallDescriptor::in_table;
  receives = counts.by_rank();
}

Agreement arrive(Group& group, const Call& call, const Contribution& contribution) {
  if (group.carrier != nullptr) check_nobody_is_gone(group);
  const std::uint64_t sequence = next_sequence(group);
  publish(group, sequence, call, &contribution);
  wait_for_arrivals(group, sequence);
  fetch_small_slot(group, sequence);
  // All have read the line that is written next: it can come here while the caller prepares its next call.
  prefetch_to_write(&group.arrival(group.rank(), sequence + 1));

  const ArrivalLine& mine = group.arrival(group.rank(), sequence);
  const bool are_alike = contributes_alike(call);
  bool agreed = mine.varied == 0;
  bool nobody_withdrew = true;
  std::size_t most = 0;
  unsigned loan_of_all = mine.loan;
  unsigned loan_of_any = 0;
  for (int rank = 0; rank < group.size(); ++rank) {
    const ArrivalLine& line = group.arrival(rank, sequence);
    agreed =
        agreed && line.varied == 0 && line.fingerprint == mine.fingerprint && (line.bytes == mine.bytes || !are_alike);
    nobody_withdrew = nobody_withdrew && line.sequence.load() == sequence;
    most = std::max(most, static_cast<std::size_t>(line.bytes));
    loan_of_all &= line.loan;
    loan_of_any |= line.loan;
  }
  if (!nobody_withdrew) group.check_nobody_withdrew();
  if (!agreed || (calls_are_compared && most > compared_whole)) check_agreement(group, sequence);
  if ((agreed || contribution.is_inline_if_varied()) && most <= inline_bytes) return {true, 0, sequence, 0, 0};
  if (agreed) return {false, call.descriptor.largest, sequence, loan_of_all, loan_of_any};  // it is the same for all
  std::size_t largest = 0;
  for (int rank = 0; rank < group.size(); ++rank)
    largest = std::max(largest, static_cast<std::size_t>(group.call(rank, sequence).largest));
  return {false, largest, sequence, loan_of_all, loan_of_any};
}

void arrive_refused(Group& group, const Refusal& refusal) {
  publish(group, next_sequence(group), refused_call(refusal), nullptr);
}

bool arrive_refused_at_once(Group& group, const Refusal& refusal) {
  group.check_usable();
  if (group.confirmed < group.sequence && !have_all_arrived(group)) return false;
  group.confirmed = group.sequence;
  group.given = {};
  publish(group, ++group.sequence, refused_call(refusal), nullptr);
  return true;
}

}  // namespace shim
