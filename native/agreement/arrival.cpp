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

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29);
}

// Equal for calls that fit together, as far as one number per rank can tell; see agreement.cpp for the rest.
std::uint32_t fingerprint_of(const Call& call) {
  const CallDescriptor& said = call.descriptor;
  const unsigned dimensions = call.has_common_table() ? 0 : said.dimensions;
  std::uint64_t hash =
      mixed(0, static_cast<std::uint64_t>(said.kind) | static_cast<std::uint64_t>(said.dtype) << 8 |
                   static_cast<std::uint64_t>(said.op) << 16 | static_cast<std::uint64_t>(dimensions) << 24 |
                   static_cast<std::uint64_t>(static_cast<std::uint16_t>(said.root)) << 32 |
                   static_cast<std::uint64_t>(static_cast<std::uint16_t>(said.device)) << 48);
  if (call.has_common_table())
    for (const std::uint64_t count : call.receives) hash = mixed(hash, count);
  else
    hash = mixed(mixed(hash, said.sends), said.receives);
  for (std::size_t d = 0; d < dimensions; ++d) hash = mixed(hash, static_cast<std::uint64_t>(said.shape[d]));
  return static_cast<std::uint32_t>(hash >> 32);
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
  const bool may_fill = bytes > inline_bytes && loan == 0;
  const SlotSize filled = may_fill ? contribution->fill_first_slot(group) : SlotSize::none;
  if constexpr (calls_are_compared) write_call(group, sequence, call);
  ArrivalLine& line = group.arrival(group.rank(), sequence);
  line.bytes = bytes;
  line.loan = loan;
  line.fingerprint = calls_are_compared ? fingerprint_of(call) : 0;
  line.varied = call.is_varied() && !call.has_common_table() ? 1 : 0;
  line.filled = filled;
  if (line.bytes > 0 && line.bytes <= inline_bytes) contribution->write_contribution(line.payload);
  group.tell_processor();
  fault_point("before_arrival");
  line.sequence.exchange(sequence);
  group.ring_bells();
  fault_point("after_arrival");
  if (group.carrier != nullptr) group.carrier->arrived(sequence, call.descriptor.kind == OperationKind::refused);
}

void wait_for_arrivals(Group& group, std::uint64_t sequence) {
  const auto arrived = [&group, sequence](int rank) {
    return group.arrival(rank, sequence).sequence.load() >= sequence;
  };
  if (group.carrier == nullptr) {
    for (int peer = 0; peer < group.size(); ++peer)
      if (peer != group.rank()) group.wait_for(peer, arrived);
  } else {  // in one wait: an arrival that is heard of as the others are asked where they are is no progress
    group.wait_for(group.rank(), [&group, &arrived](int rank) {
      for (int peer = 0; rank == group.rank() && peer < group.size(); ++peer)
        if (peer != rank && !arrived(peer)) return false;
      return rank == group.rank() || arrived(rank);
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
  return ++group.sequence;
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
  const std::uint64_t sequence = next_sequence(group);
  publish(group, sequence, call, &contribution);
  wait_for_arrivals(group, sequence);
  fetch_small_slot(group, sequence);
  // All have read the line that is written next: it can come here while the caller prepares its next call.
  prefetch_to_write(&group.arrival(group.rank(), sequence + 1));

  const ArrivalLine& mine = group.arrival(group.rank(), sequence);
  bool agreed = mine.varied == 0;
  std::size_t most = 0;
  unsigned loan_of_all = mine.loan;
  unsigned loan_of_any = 0;
  for (int rank = 0; rank < group.size(); ++rank) {
    const ArrivalLine& line = group.arrival(rank, sequence);
    agreed = agreed && line.varied == 0 && line.fingerprint == mine.fingerprint;
    most = std::max(most, static_cast<std::size_t>(line.bytes));
    loan_of_all &= line.loan;
    loan_of_any |= line.loan;
  }
  // A fingerprint is one number for many calls. Where ranks are to reach into each other's tensors, it is not enough.
  if (!agreed || (loan_of_all & lent) != 0) check_agreement(group, sequence);
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
  publish(group, ++group.sequence, refused_call(refusal), nullptr);
  return true;
}

}  // namespace shim
