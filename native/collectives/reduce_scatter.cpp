// reduce_scatter: every rank puts a cell for each rank into its ring's slots; each rank combines the cells meant for
// it, in rank order. Each rank: (N-1)/N*S bytes in, its part of N inputs read, its part written.
// Direct, where all inputs lie in shared memory: S read, S/N written.
#include "collectives/collectives.hpp"
#include "collectives/exchange.hpp"
#include "collectives/reductions.hpp"
#include "machine/faster_way.hpp"

namespace shim {
namespace {

constexpr std::size_t combined_at_once = 32 * 1024;  // bytes

class ReduceScatter final : public Operation {
 public:
  ReduceScatter(Call&& call, Seat seat, const TensorView& output, Parts&& inputs)
      : Operation(std::move(call)), rank_(seat.rank), output_(output), inputs_(std::move(inputs)) {
    for (Buffer& input : inputs_.buffers())
      if (input.shares_memory_with(output_)) input.detach();
  }
  std::size_t bytes() const override { return inputs_.total_bytes(); }
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
    if (largest > cell_bytes(group, SlotSize::large)) return SlotSize::none;
    const SlotSize slot = Exchange::first_slot(group, slot_for_cells(group, largest));
    if (slot != SlotSize::none) fill_cells(group, group.steps, slot, inputs_, 0);
    return slot;
  }

  void read_lines(Group& group, const Agreement& agreement) override {
    const std::size_t start = static_cast<std::size_t>(rank_) * output_.bytes();
    const RankCombiner combine(group, agreement.sequence, call_.descriptor.dtype, call_.descriptor.op);
    combine(output_.data(), nullptr, output_.bytes(),
            [&](int rank) { return group.arrival(rank, agreement.sequence).payload + start; });
  }

  void read_rings(Group& group, const Agreement& agreement) override {
    const SlotSize slot = slot_for_cells(group, agreement.largest);
    Exchange exchange(group, slot, agreement.largest, cell_bytes(group, slot));
    const auto size = static_cast<std::size_t>(group.size());
    const OutputCopy copy_out(agreement.largest * size * (size + 1), group.thresholds());
    const RankCombiner combine(group, agreement.sequence, call_.descriptor.dtype, call_.descriptor.op);
    FasterWay way(exchange.steps());  // where outputs are streamed: with the own input asked for ahead, or without
    exchange.run(
        [&](std::uint64_t step) {
          fill_cells(group, exchange.number_of(step), slot, inputs_, exchange.start_of(step));
        },
        [&](std::uint64_t step) {
          const Part piece = piece_of({output_.data(), output_.bytes()}, exchange.start_of(step), exchange.chunk());
          if (piece.bytes == 0) return;
          const std::byte* own = inputs_[rank_].data + exchange.start_of(step);
          const auto source_of = [&](int rank) {
            return rank == rank_ ? own : exchange.cell_of(rank, step, exchange.chunk());
          };
          if (!copy_out.streams()) return combine(piece.data, nullptr, piece.bytes, source_of);
          const auto take = [&](std::size_t at, const std::byte* block, std::size_t bytes) {
            copy_out(piece.data + at, block, bytes);
          };
          for (int rank = 0; rank < group.size(); ++rank) source_of(rank);  // waits, which is not timed
          way.piece([&](bool asks_ahead) {
            const auto is_asked_ahead = [&](int rank) { return rank == rank_ && asks_ahead; };
            combine.in_blocks(is_asked_ahead, piece.bytes, source_of, take);
          });
        });
  }

  void read_directly(Group& group, const Agreement& agreement, const DirectAccess& access) override {
    const RankCombiner combine(group, agreement.sequence, call_.descriptor.dtype, call_.descriptor.op);
    const std::vector<std::byte*> inputs = access.tensors(static_cast<std::size_t>(rank_), inputs_[rank_].data);
    const auto size = static_cast<std::size_t>(group.size());
    const OutputCopy copy_out(agreement.largest * size * (size + 1), group.thresholds());
    FasterWay way(output_.bytes() / combined_at_once);
    for (std::size_t start = 0; start < output_.bytes(); start += combined_at_once) {
      const std::size_t end = std::min(start + combined_at_once, output_.bytes());
      way.piece([&](bool is_first_way) {
        if (copy_out.streams())
          stream_combined(combine, inputs, start, end, is_first_way);
        else
          store_combined(combine, inputs, start, end, is_first_way);
      });
    }
  }

  // Two ways, of which one takes up to twice as long on some processors, and the other on others: asking memory for all
  // ranks' next blocks ahead, and leaving that to the processor.
  void stream_combined(const RankCombiner& combine, const std::vector<std::byte*>& inputs, std::size_t begin,
                       std::size_t end, bool asks_ahead) {
    combine.in_blocks_between([asks_ahead](int) { return asks_ahead; }, begin, end, output_.bytes(), inputs.data(),
                              [this](std::size_t at, const std::byte* block, std::size_t bytes) {
                                stream_bytes(output_.data() + at, block, bytes);
                              });
  }

  // Two ways as well: straight into the output, and in a place that is in the cache, from where a copy of many lines
  // does not fetch what it overwrites.
  void store_combined(const RankCombiner& combine, const std::vector<std::byte*>& inputs, std::size_t begin,
                      std::size_t end, bool is_straight) {
    std::byte* output = output_.data() + begin;
    const auto source_of = [&](int rank) { return inputs[static_cast<std::size_t>(rank)] + begin; };
    if (is_straight) return combine(output, nullptr, end - begin, source_of);
    alignas(64) std::byte combined[combined_at_once];
    combine(combined, nullptr, end - begin, source_of);
    copy_bytes(output, combined, end - begin);
  }

  void lend_to(Loan& loan) const override { loan.add_parts(inputs_, rank_); }

  void store() override { output_.store(); }

  int rank_;
  Buffer output_;
  Parts inputs_;
};

}  // namespace

std::unique_ptr<Operation> make_reduce_scatter(Seat seat, const TensorArgument& output, const TensorArgument& inputs,
                                               const SplitArgument& input_splits, Reduction how) {
  const TensorView& view = output.tensor();
  check_op(how.op, view.dtype);
  check_writable(output);
  const Counts counts = part_counts(inputs, input_splits, seat.size);
  check_same_dtype(output, inputs);
  check_own_part(inputs, counts, seat.rank, output);
  Parts parts(inputs.views(), counts);
  Call call(OperationKind::reduce_scatter, view.dtype);
  call.descriptor.op = how.op;
  call.descriptor.factor = how.factor;
  call.set_sends(counts);
  call.descriptor.receives = view.count();
  call.descriptor.largest = parts.largest_bytes();
  call.set_shape(view);
  return std::make_unique<ReduceScatter>(std::move(call), seat, view, std::move(parts));
}

}  // namespace shim
