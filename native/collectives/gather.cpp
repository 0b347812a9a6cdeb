// all_gather and gather: every rank fills its ring, but the root of a gather; those who get the result copy each ring
// into that rank's part.
// Each rank: S bytes in; each receiving rank: (N-1)*S bytes out, and its own part copied directly.
// Large, on two ranks that may reach into each other's memory, all_gather: N*S copied by each rank.
// Direct, where all inputs lie in shared memory: N*S copied by each receiving rank.
#include "collectives/across.hpp"
#include "collectives/collectives.hpp"
#include "collectives/direct.hpp"
#include "collectives/exchange.hpp"

namespace shim {
namespace {

class Gather final : public Operation {
 public:
  // `outputs` is empty on ranks that get nothing.
  Gather(Call&& call, Seat seat, const TensorView& input, Parts&& outputs)
      : Operation(std::move(call)), rank_(seat.rank), input_(input), outputs_(std::move(outputs)) {
    outputs_.write_in_order();
    // What lies where its own part goes may stay there: of outputs that are one tensor nothing else is written to it.
    const std::vector<Buffer>& buffers = outputs_.buffers();
    const std::size_t own = buffers.size() > 1 ? static_cast<std::size_t>(rank_) : 0;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const bool is_in_place = i == own && !input_.goes_through_copy() && !buffers[i].goes_through_copy() &&
                               outputs_[rank_].data == input.data;
      if (!is_in_place && input_.shares_memory_with(buffers[i])) input_.detach();
    }
  }
  std::size_t bytes() const override { return input_.bytes() + outputs_.total_bytes(); }
  Accesses accesses() override { return {{&input_}, outputs_.pointers()}; }

 private:
  void load() override {
    input_.load();
    for (Buffer& output : outputs_.buffers()) output.reserve();
  }
  std::size_t contributed_bytes() const override { return input_.bytes(); }
  void write_contribution(std::byte* to) const override { copy_bytes(to, input_.data(), input_.bytes()); }
  SlotSize fill_first_slot(Group& group) const override {
    if (input_.bytes() > group.thresholds().piece || !is_read()) return SlotSize::none;
    const SlotSize slot = Exchange::first_slot(group, slot_for(input_.bytes()));
    if (slot != SlotSize::none)
      group.ring_stores().copy(group.ring_slot(group.rank(), group.steps, slot), input_.data(), input_.bytes());
    return slot;
  }
  bool is_inline_if_varied() const override { return true; }

  void read_lines(Group& group, const Agreement& agreement) override {
    if (outputs_.empty()) return;
    for (int peer = 0; peer < group.size(); ++peer)
      copy_bytes(outputs_[peer].data, group.arrival(peer, agreement.sequence).payload, outputs_[peer].bytes);
  }

  void read_rings(Group& group, const Agreement& agreement) override {
    const Part mine{input_.data(), input_.bytes()};
    const auto size = static_cast<std::size_t>(group.size());
    const OutputCopy copy_out(agreement.largest * size * (receivers(group) + 1), group.thresholds());
    // The kernel, which copies across, does not write past the caches.
    if (!copy_out.streams() && swap(group, agreement.sequence, mine)) return;
    Exchange exchange(group, slot_for(agreement.largest), agreement.largest, group.thresholds().piece);
    exchange.run(
        [&](std::uint64_t step) {
          if (!is_read()) return;
          const Part piece = piece_of(mine, exchange.start_of(step), exchange.chunk());
          group.ring_stores().copy(exchange.own_slot(step), piece.data, piece.bytes);
        },
        [&](std::uint64_t step) {
          if (outputs_.empty()) return;
          const Part own = piece_of(outputs_[rank_], exchange.start_of(step), exchange.chunk());
          copy_out(own.data, mine.data + exchange.start_of(step), own.bytes);
          for (int i = 1; i < group.size(); ++i) {
            const int peer = (rank_ + i) % group.size();  // staggered, so that ranks do not crowd at one ring
            const Part piece = piece_of(outputs_[peer], exchange.start_of(step), exchange.chunk());
            if (piece.bytes == 0) continue;
            const std::byte* const slot = exchange.slot_of(peer, step);
            copy_out(piece.data, slot, piece.bytes);
            // Of two ranks, this one writes next where it has read, but no more than its own part. With larger parts it
            // would only have more to do. What the root of a gather alone reads is not claimed: see claim_read.
            if (is_for_all() && group.size() == 2 && exchange.steps() == 1 && piece.bytes > own.bytes)
              claim_read(group, slot + own.bytes, piece.bytes - own.bytes);
          }
        });
  }

  bool swap(Group& group, std::uint64_t sequence, const Part& mine) {
    if (!is_for_all() || group.size() != 2) return false;
    return swap_across(group, sequence, {mine, outputs_[1 - rank_], mine, outputs_[rank_].data});
  }

  void read_directly(Group& group, const Agreement& agreement, const DirectAccess& access) override {
    if (outputs_.empty()) return;
    const OutputCopy copy_out(outputs_.total_bytes() * receivers(group), group.thresholds());
    const std::vector<std::byte*> inputs = access.tensors(0, input_.data());
    for (std::size_t start = 0; start < agreement.largest; start += direct_chunk)
      for (int i = 0; i < group.size(); ++i) {
        const int peer = (rank_ + i) % group.size();  // staggered, as above
        const Part piece = piece_of(outputs_[peer], start, direct_chunk);
        if (piece.bytes > 0) copy_out(piece.data, inputs[static_cast<std::size_t>(peer)] + start, piece.bytes);
      }
  }

  void lend_to(Loan& loan) const override {
    if (is_read()) loan.add(0, {input_.data(), input_.bytes()});
  }

  bool is_for_all() const { return call_.descriptor.kind == OperationKind::all_gather; }
  // Whether another rank reads what this one gives.
  bool is_read() const { return call_.descriptor.root != rank_; }
  std::size_t receivers(const Group& group) const { return is_for_all() ? static_cast<std::size_t>(group.size()) : 1; }

  void store() override {
    for (Buffer& output : outputs_.buffers()) output.store();
  }

  int rank_;
  Buffer input_;
  Parts outputs_;
};

// On a rank that gets the parts, `outputs` is given.
std::unique_ptr<Operation> make(Call&& call, Seat seat, const TensorArgument* outputs, const TensorArgument& input,
                                const SplitArgument& output_splits) {
  const TensorView& view = input.tensor();
  call.descriptor.sends = call.descriptor.receives = view.count();
  call.descriptor.largest = view.bytes();
  call.set_shape(view);
  Parts parts;
  if (outputs != nullptr) {
    const Counts counts = gathered_counts(*outputs, output_splits, seat.size, input);
    check_writable(*outputs);
    check_same_dtype(*outputs, input);
    check_own_part(*outputs, counts, seat.rank, input);
    call.set_receives(counts);
    parts = Parts(outputs->views(), counts);
    call.descriptor.largest = std::max<std::uint64_t>(call.descriptor.largest, parts.largest_bytes());
  }
  return std::make_unique<Gather>(std::move(call), seat, view, std::move(parts));
}

}  // namespace

std::unique_ptr<Operation> make_all_gather(Seat seat, const TensorArgument& outputs, const TensorArgument& input,
                                           const SplitArgument& output_splits) {
  return make(Call(OperationKind::all_gather, input.tensor().dtype), seat, &outputs, input, output_splits);
}

std::unique_ptr<Operation> make_gather(Seat seat, const TensorArgument& outputs, const TensorArgument& input,
                                       const SplitArgument& output_splits, int root) {
  check_rank("root", root, seat.size);
  Call call(OperationKind::gather, input.tensor().dtype);
  call.descriptor.root = static_cast<std::int16_t>(root);
  return make(std::move(call), seat, seat.rank == root ? &outputs : nullptr, input, output_splits);
}

}  // namespace shim
