// all_reduce and reduce: every rank fills its ring; those who get the result combine all rings, in rank order.
// Each rank: S bytes in; each receiving rank: N*S bytes read, S written. One-shot, so all ranks compute the same bits.
#include "../exchange.hpp"
#include "collectives.hpp"
#include "reductions.hpp"

namespace shim {
namespace {

class Reduce final : public Operation {
 public:
  // `output` is null on ranks that get nothing.
  Reduce(Call call, const TensorView& input, const TensorView* output) : Operation(std::move(call)), input_(input) {
    if (output == nullptr) return;
    output_.emplace(*output);
    const bool in_place = output->data == input.data && output->is_contiguous() && input.is_contiguous();
    if (!in_place && input_.shares_memory_with(*output_)) input_.detach();
  }
  std::size_t bytes() const override { return input_.bytes(); }

 private:
  void load() override {
    input_.load();
    if (output_) output_->reserve();
  }
  std::size_t contributed_bytes() const override { return input_.bytes(); }
  void write_contribution(std::byte* to) const override { copy_bytes(to, input_.data(), input_.bytes()); }

  void read_lines(Group& group, const Agreement& agreement) override {
    if (!output_) return;
    const RankCombiner combine(group, agreement.sequence, call_.descriptor.dtype, call_.descriptor.op);
    combine(output_->data(), output_->bytes(),
            [&](int rank) { return group.arrival(rank, agreement.sequence).payload; });
  }

  void read_rings(Group& group, const Agreement& agreement) override {
    Exchange exchange(group, agreement.largest, ring_slot_bytes);
    const RankCombiner combine(group, agreement.sequence, call_.descriptor.dtype, call_.descriptor.op);
    const Part whole{input_.data(), input_.bytes()};
    exchange.run(
        [&](std::uint64_t step, std::byte* slot) {
          const Part piece = piece_of(whole, exchange.start_of(step), exchange.chunk());
          copy_bytes(slot, piece.data, piece.bytes);
        },
        [&](std::uint64_t step) {
          if (!output_) return;
          const Part piece = piece_of({output_->data(), output_->bytes()}, exchange.start_of(step), exchange.chunk());
          combine(piece.data, piece.bytes, [&](int rank) { return exchange.slot_of(rank, step); });
        });
  }

  void store() override {
    if (output_) output_->store();
  }

  Buffer input_;
  std::optional<Buffer> output_;
};

Call call_of(OperationKind kind, const TensorView& input, Reduction how) {
  Call call(kind, input.dtype);
  call.descriptor.op = how.op;
  call.descriptor.factor = how.factor;
  call.descriptor.sends = call.descriptor.receives = input.count();
  call.descriptor.largest = input.bytes();
  call.set_shape(input);
  return call;
}

void check_pair(const TensorArgument& output, const TensorArgument& input) {
  check_writable(output);
  check_same_dtype(output, input);
  check_same_count(output, input);
}

}  // namespace

std::unique_ptr<Operation> make_all_reduce(Seat, const TensorArgument& output, const TensorArgument& input,
                                           Reduction how) {
  check_op(how.op, input.tensor().dtype);
  check_pair(output, input);
  return std::make_unique<Reduce>(call_of(OperationKind::all_reduce, input.tensor(), how), input.tensor(),
                                  &output.tensor());
}

std::unique_ptr<Operation> make_reduce(Seat seat, const TensorArgument& output, const TensorArgument& input,
                                       Reduction how, int root) {
  check_rank("root", root, seat.size);
  check_op(how.op, input.tensor().dtype);
  if (seat.rank == root) check_pair(output, input);
  Call call = call_of(OperationKind::reduce, input.tensor(), how);
  call.descriptor.root = root;
  return std::make_unique<Reduce>(std::move(call), input.tensor(), seat.rank == root ? &output.tensor() : nullptr);
}

}  // namespace shim
