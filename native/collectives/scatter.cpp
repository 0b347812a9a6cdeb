// scatter: the root puts a cell for each rank into its ring's slots, each rank copies its own cell out.
// Root: (N-1)/N*S bytes in for S bytes of input, and its own part copied directly; others: their part out.
// Direct, where the root's input lies in shared memory: S/N copied by each rank.
#include "collectives/collectives.hpp"
#include "collectives/exchange.hpp"

namespace shim {
namespace {

class Scatter final : public Operation {
 public:
  // `inputs` is empty except on the root.
  Scatter(Call&& call, Seat seat, const TensorView& output, Parts&& inputs, int root)
      : Operation(std::move(call)), rank_(seat.rank), root_(root), output_(output), inputs_(std::move(inputs)) {
    for (Buffer& input : inputs_.buffers())
      if (input.shares_memory_with(output_)) input.detach();
  }
  std::size_t bytes() const override { return output_.bytes() + inputs_.total_bytes(); }
  Accesses accesses() override { return {inputs_.pointers(), {&output_}}; }

 private:
  void load() override {
    for (Buffer& input : inputs_.buffers()) input.load();
    output_.reserve();
  }
  std::size_t contributed_bytes() const override { return inputs_.total_bytes(); }
  void write_contribution(std::byte* to) const override { inputs_.copy_to(to); }
  SlotSize fill_first_slot(Group& group) const override {
    const std::size_t largest = call_.descriptor.largest;
    if (inputs_.empty() || largest > cell_bytes(group, SlotSize::large)) return SlotSize::none;
    const SlotSize slot = Exchange::first_slot(group, slot_for_cells(group, largest));
    if (slot != SlotSize::none) fill_cells(group, group.steps, slot, inputs_, 0);
    return slot;
  }

  void read_lines(Group& group, const Agreement& agreement) override {
    const std::byte* all = group.arrival(root_, agreement.sequence).payload;
    copy_bytes(output_.data(), all + static_cast<std::size_t>(rank_) * output_.bytes(), output_.bytes());
  }

  void read_rings(Group& group, const Agreement& agreement) override {
    const SlotSize slot = slot_for_cells(group, agreement.largest);
    Exchange exchange(group, slot, agreement.largest, cell_bytes(group, slot));
    const OutputCopy copy_out(2 * agreement.largest * static_cast<std::size_t>(group.size()), group.thresholds());
    exchange.run(
        [&](std::uint64_t step) {
          if (!inputs_.empty()) fill_cells(group, exchange.number_of(step), slot, inputs_, exchange.start_of(step));
        },
        [&](std::uint64_t step) {
          const Part piece = piece_of({output_.data(), output_.bytes()}, exchange.start_of(step), exchange.chunk());
          if (piece.bytes == 0) return;
          const std::byte* from = rank_ == root_ ? inputs_[rank_].data + exchange.start_of(step)
                                                 : exchange.cell_of(root_, step, exchange.chunk());
          copy_out(piece.data, from, piece.bytes);
          if (rank_ != root_) claim_read(group, from, piece.bytes);
        });
  }

  void read_directly(Group& group, const Agreement& agreement, const DirectAccess& access) override {
    const OutputCopy copy_out(agreement.largest * static_cast<std::size_t>(group.size()), group.thresholds());
    std::byte* own = rank_ == root_ ? inputs_[rank_].data : nullptr;
    const std::byte* input = access.tensors(static_cast<std::size_t>(rank_), own)[static_cast<std::size_t>(root_)];
    if (output_.bytes() > 0) copy_out(output_.data(), input, output_.bytes());
  }

  void lend_to(Loan& loan) const override {
    if (!inputs_.empty()) loan.add_parts(inputs_, rank_);
  }

  void store() override { output_.store(); }

  int rank_;
  int root_;
  Buffer output_;
  Parts inputs_;
};

}  // namespace

std::unique_ptr<Operation> make_scatter(Seat seat, const TensorArgument& output, const TensorArgument& inputs,
                                        const SplitArgument& input_splits, int root) {
  check_rank("root", root, seat.size);
  check_writable(output);
  const TensorView& view = output.tensor();
  Call call(OperationKind::scatter, view.dtype);
  call.descriptor.root = static_cast<std::int16_t>(root);
  call.descriptor.sends = call.descriptor.receives = view.count();
  call.set_shape(view);
  Parts parts;
  if (seat.rank == root) {
    const Counts counts = part_counts(inputs, input_splits, seat.size);
    check_same_dtype(output, inputs);
    check_own_part(inputs, counts, seat.rank, output);
    call.set_sends(counts);
    parts = Parts(inputs.views(), counts);
  }
  call.descriptor.largest = std::max(view.bytes(), parts.largest_bytes());
  return std::make_unique<Scatter>(std::move(call), seat, view, std::move(parts), root);
}

}  // namespace shim
