// all_to_all: every rank puts a cell for each rank into its ring's slots; each copies the cells meant for it.
// Each rank: (N-1)/N*S bytes in and out through the ring, its own part copied directly.
// Large, on two ranks that may reach into each other's memory: S copied by each rank.
// Direct, where all inputs lie in shared memory: S copied.
#include "collectives/across.hpp"
#include "collectives/collectives.hpp"
#include "collectives/direct.hpp"
#include "collectives/exchange.hpp"

namespace shim {
namespace {

class AllToAll final : public Operation {
 public:
  AllToAll(Call&& call, Seat seat, Parts&& outputs, Parts&& inputs)
      : Operation(std::move(call)), rank_(seat.rank), outputs_(std::move(outputs)), inputs_(std::move(inputs)) {
    outputs_.write_in_order();
    for (Buffer& input : inputs_.buffers())
      for (const Buffer& output : outputs_.buffers())
        if (input.shares_memory_with(output)) input.detach();
  }
  std::size_t bytes() const override { return inputs_.total_bytes() + outputs_.total_bytes(); }
  Accesses accesses() override { return {inputs_.pointers(), outputs_.pointers()}; }

 private:
  void load() override {
    for (Buffer& input : inputs_.buffers()) input.load();
    for (Buffer& output : outputs_.buffers()) output.reserve();
  }
  std::size_t contributed_bytes() const override { return inputs_.total_bytes(); }
  void write_contribution(std::byte* to) const override { inputs_.copy_to(to); }
  SlotSize fill_first_slot(Group& group) const override {
    const std::size_t largest = call_.descriptor.largest;
    if (largest > cell_bytes(group, SlotSize::large)) return SlotSize::none;
    const SlotSize slot = Exchange::first_slot(group, slot_for_cells(group, largest));
    if (slot != SlotSize::none) fill_cells(group, group.steps, slot, inputs_, 0);
    return slot;
  }

  void read_lines(Group& group, const Agreement& agreement) override {
    for (int peer = 0; peer < group.size(); ++peer) {
      const Part part = outputs_[peer];
      copy_bytes(part.data,
                 group.arrival(peer, agreement.sequence).payload + static_cast<std::size_t>(rank_) * part.bytes,
                 part.bytes);
    }
  }

  void read_rings(Group& group, const Agreement& agreement) override {
    const auto size = static_cast<std::size_t>(group.size());
    const OutputCopy copy_out(2 * agreement.largest * size * size, group.thresholds());
    // The kernel, which copies across, does not write past the caches.
    if (!copy_out.streams() && swap(group, agreement.sequence)) return;
    const SlotSize slot = slot_for_cells(group, agreement.largest);
    Exchange exchange(group, slot, agreement.largest, cell_bytes(group, slot));
    copy_out(outputs_[rank_].data, inputs_[rank_].data, inputs_[rank_].bytes);
    exchange.run(
        [&](std::uint64_t step) {
          fill_cells(group, exchange.number_of(step), slot, inputs_, exchange.start_of(step));
        },
        [&](std::uint64_t step) {
          for (int i = 1; i < group.size(); ++i) {
            const int peer = (rank_ + i) % group.size();  // staggered, so that ranks do not crowd at one ring
            const Part piece = piece_of(outputs_[peer], exchange.start_of(step), exchange.chunk());
            if (piece.bytes > 0) copy_out(piece.data, exchange.cell_of(peer, step, exchange.chunk()), piece.bytes);
          }
        });
  }

  bool swap(Group& group, std::uint64_t sequence) {
    if (group.size() != 2) return false;
    const int other = 1 - rank_;
    return swap_across(group, sequence, {inputs_[other], outputs_[other], inputs_[rank_], outputs_[rank_].data});
  }

  void read_directly(Group& group, const Agreement& agreement, const DirectAccess& access) override {
    const auto size = static_cast<std::size_t>(group.size());
    const OutputCopy copy_out(agreement.largest * size * size, group.thresholds());
    const std::vector<std::byte*> inputs = access.tensors(static_cast<std::size_t>(rank_), inputs_[rank_].data);
    for (std::size_t start = 0; start < agreement.largest; start += direct_chunk)
      for (int i = 0; i < group.size(); ++i) {
        const int peer = (rank_ + i) % group.size();  // staggered, as above
        const Part piece = piece_of(outputs_[peer], start, direct_chunk);
        if (piece.bytes > 0) copy_out(piece.data, inputs[static_cast<std::size_t>(peer)] + start, piece.bytes);
      }
  }

  void lend_to(Loan& loan) const override { loan.add_parts(inputs_, rank_); }

  void store() override {
    for (Buffer& output : outputs_.buffers()) output.store();
  }

  int rank_;
  Parts outputs_;
  Parts inputs_;
};

}  // namespace

std::unique_ptr<Operation> make_all_to_all(Seat seat, const TensorArgument& outputs, const TensorArgument& inputs,
                                           const SplitArgument& output_splits, const SplitArgument& input_splits) {
  const Counts receives = part_counts(outputs, output_splits, seat.size);
  const Counts sends = part_counts(inputs, input_splits, seat.size);
  check_writable(outputs);
  check_same_dtype(outputs, inputs);
  const auto own = static_cast<std::size_t>(seat.rank);
  if (receives[own] != sends[own])
    throw Failure(FailureKind::argument, "this rank's own parts of {output} and {input} must be equally large, got " +
                                             std::to_string(receives[own]) + " and " + std::to_string(sends[own]) +
                                             " elements");
  Parts output_parts(outputs.views(), receives);
  Parts input_parts(inputs.views(), sends);
  Call call(OperationKind::all_to_all, inputs.tensor().dtype);
  call.set_sends(sends);
  call.set_receives(receives);
  call.descriptor.largest = std::max(output_parts.largest_bytes(), input_parts.largest_bytes());
  return std::make_unique<AllToAll>(std::move(call), seat, std::move(output_parts), std::move(input_parts));
}

}  // namespace shim
