// all_reduce and reduce, in rank order whichever way, so that all ranks get the same bits.
//
// One-shot: every rank fills its ring, but the root of a reduce; those who get the result combine all rings. Each rank:
// S bytes in; each receiving rank: N*S bytes read, S written. Two-shot, for an all_reduce that is worth another wait:
// every rank combines one cell of each piece and passes it on. Each rank: (N-1)/N*S in, S read and 2/N*S written to
// combine, (N-1)/N*S out. Direct, where all inputs and outputs lie in shared memory: every rank combines a slice of all
// inputs and stores it to all outputs. Each rank: S read, S written.
#include "collectives/collectives.hpp"
#include "collectives/exchange.hpp"
#include "collectives/reductions.hpp"
#include "machine/faster_way.hpp"

namespace shim {
namespace {

constexpr std::size_t stored_at_once = 16 * 1024;  // bytes, which stay in the L1 cache for the next output

// Bytes of a rank's cell of a piece: as large as fits, and such that all pieces are about equally large.
std::size_t balanced_cell(std::size_t bytes, std::size_t ranks) {
  const std::size_t most = ring_slot_bytes / ranks / cell_unit * cell_unit;
  const std::size_t pieces = (bytes + most * ranks - 1) / (most * ranks);
  const std::size_t cells = pieces * ranks;
  return ((bytes + cells - 1) / cells + cell_unit - 1) / cell_unit * cell_unit;
}

class Reduce final : public Operation {
 public:
  // `output` is null on ranks that get nothing.
  Reduce(Call&& call, const TensorView& input, const TensorView* output) : Operation(std::move(call)), input_(input) {
    if (output == nullptr) return;
    output_.emplace(*output);
    const bool in_place = output->data == input.data && !output_->goes_through_copy() && !input_.goes_through_copy();
    if (!in_place && input_.shares_memory_with(*output_)) input_.detach();
  }
  std::size_t bytes() const override { return input_.bytes(); }
  Accesses accesses() override { return output_ ? Accesses{{&input_}, {&*output_}} : Accesses{{&input_}, {}}; }

 private:
  void load() override {
    input_.load();
    if (output_) output_->reserve();
  }
  std::size_t contributed_bytes() const override { return input_.bytes(); }
  void write_contribution(std::byte* to) const override { copy_bytes(to, input_.data(), input_.bytes()); }
  SlotSize fill_first_slot(Group& group) const override {
    if (is_two_shot(group)) {
      const auto size = static_cast<std::size_t>(group.size());
      const std::size_t cell = balanced_cell(input_.bytes(), size);
      if (input_.bytes() > cell * size) return SlotSize::none;
      const SlotSize slot = Exchange::first_slot(group, slot_for(cell * size));
      if (slot != SlotSize::none) fill_others(group, group.steps, slot, 0, cell);
      return slot;
    }
    if (input_.bytes() > group.thresholds().piece || !is_read()) return SlotSize::none;
    const SlotSize slot = Exchange::first_slot(group, slot_for(input_.bytes()));
    if (slot != SlotSize::none)
      group.ring_stores().copy(group.ring_slot(group.rank(), group.steps, slot), input_.data(), input_.bytes());
    return slot;
  }

  bool is_for_all() const { return call_.descriptor.kind == OperationKind::all_reduce; }
  // Whether another rank reads what this one gives: all do but the root.
  bool is_read() const { return is_for_all() || !output_; }

  bool is_two_shot(const Group& group) const {
    return is_for_all() && input_.bytes() > group.thresholds().one_shot && group.size() > 1;
  }

  // The cells that other ranks combine, of the piece that begins at `start`.
  void fill_others(Group& group, std::uint64_t step, SlotSize slot, std::size_t start, std::size_t cell) const {
    const auto size = static_cast<std::size_t>(group.size());
    for (std::size_t i = 1; i < size; ++i) {
      const std::size_t peer = (static_cast<std::size_t>(group.rank()) + i) % size;
      const Part piece = piece_of({input_.data(), input_.bytes()}, start + peer * cell, cell);
      group.ring_stores().copy(group.ring_cell(group.rank(), static_cast<int>(peer), step, slot, cell), piece.data,
                               piece.bytes);
    }
  }

  void read_lines(Group& group, const Agreement& agreement) override {
    if (!output_) return;
    const RankCombiner combine(group, agreement.sequence, call_.descriptor.dtype, call_.descriptor.op);
    combine(output_->data(), nullptr, output_->bytes(),
            [&](int rank) { return group.arrival(rank, agreement.sequence).payload; });
  }

  void read_rings(Group& group, const Agreement& agreement) override {
    const RankCombiner combine(group, agreement.sequence, call_.descriptor.dtype, call_.descriptor.op);
    if (is_two_shot(group))
      two_shot(group, combine);
    else
      one_shot(group, combine);
  }

  void one_shot(Group& group, const RankCombiner& combine) {
    Exchange exchange(group, slot_for(input_.bytes()), input_.bytes(), group.thresholds().piece);
    const Part whole{input_.data(), input_.bytes()};
    exchange.run(
        [&](std::uint64_t step) {
          if (!is_read()) return;
          const Part piece = piece_of(whole, exchange.start_of(step), exchange.chunk());
          group.ring_stores().copy(exchange.own_slot(step), piece.data, piece.bytes);
        },
        [&](std::uint64_t step) {
          if (!output_) return;
          const Part piece = piece_of({output_->data(), output_->bytes()}, exchange.start_of(step), exchange.chunk());
          const std::byte* own = input_.data() + exchange.start_of(step);
          combine(piece.data, nullptr, piece.bytes,
                  [&](int rank) { return rank == group.rank() ? own : exchange.slot_of(rank, step); });
          // Of more ranks, the root would be busy with all their slots.
          const int other = 1 - group.rank();
          if (!is_for_all() && group.size() == 2) claim_read(group, exchange.slot_of(other, step), piece.bytes);
        });
  }

  // A step moves a cell for each rank; that of a rank lies at the same place in all slots.
  void two_shot(Group& group, const RankCombiner& combine) {
    const auto size = static_cast<std::size_t>(group.size());
    const auto rank_at = [&](std::size_t offset) { return (static_cast<std::size_t>(group.rank()) + offset) % size; };
    const bool is_large = input_.bytes() * size > group.thresholds().stream;
    const std::size_t cell = balanced_cell(input_.bytes(), size);
    Exchange exchange(group, slot_for(cell * size), input_.bytes(), cell * size);
    FasterWay way(exchange.steps());
    const auto cell_of = [&](std::byte* data, std::uint64_t step, std::size_t rank) {
      return piece_of({data, input_.bytes()}, exchange.start_of(step) + rank * cell, cell);
    };
    exchange.run(
        [&](std::uint64_t step) {
          fill_others(group, exchange.number_of(step), exchange.slot(), exchange.start_of(step), cell);
        },
        [&](std::uint64_t step) {
          const std::size_t me = rank_at(0);
          const Part own = cell_of(input_.data(), step, me);
          if (own.bytes == 0) return;
          const auto source_of = [&](int rank) {
            return rank == group.rank() ? own.data : exchange.cell_of(rank, step, cell);
          };
          for (int rank = 0; is_large && rank < group.size(); ++rank) source_of(rank);  // waits, which is not timed
          const Made made{cell_of(output_->data(), step, me).data,
                          group.made_cell(group.rank(), exchange.number_of(step), exchange.slot(), cell), own.bytes};
          make(group, combine, made, source_of, is_large ? &way : nullptr);
        },
        [&](std::uint64_t step) {
          for (std::size_t i = 1; i < size; ++i) {  // staggered, so that ranks do not crowd at one ring
            const std::size_t peer = rank_at(i);
            const Part piece = cell_of(output_->data(), step, peer);
            copy_bytes(piece.data, exchange.made_cell_of(static_cast<int>(peer), step, cell), piece.bytes);
          }
        });
  }

  // What a rank combines of a step: into its output, and into its slot, where the others take it from.
  struct Made {
    std::byte* output;
    std::byte* slot;
    std::size_t bytes;
  };

  // In blocks that are stored as long as they are in the first cache, or straight into both: which is faster for
  // tensors that no cache holds, which have a `way`, differs between processors. What goes past the caches needs
  // blocks.
  template <class SourceOf>
  static void make(Group& group, const RankCombiner& combine, const Made& made, const SourceOf& source_of,
                   FasterWay* way) {
    const bool streams = group.ring_stores().stream(made.bytes);
    const auto go = [&](bool is_in_blocks) {
      if (!is_in_blocks) return combine(made.output, made.slot, made.bytes, source_of);
      const auto take = [&](std::size_t at, const std::byte* block, std::size_t bytes) {
        copy_bytes(made.output + at, block, bytes);
        (streams ? stream_bytes : copy_bytes)(made.slot + at, block, bytes);
      };
      combine.in_blocks([&group](int rank) { return rank == group.rank(); }, made.bytes, source_of, take);
    };
    if (streams || way == nullptr) return go(streams);
    way->piece(go);
  }

  void read_directly(Group& group, const Agreement& agreement, const DirectAccess& access) override {
    if (!output_) return;
    const RankCombiner combine(group, agreement.sequence, call_.descriptor.dtype, call_.descriptor.op);
    const std::vector<std::byte*> inputs = access.tensors(0, input_.data());
    const auto at = [&](std::size_t start) {
      return [&inputs, start](int rank) { return inputs[static_cast<std::size_t>(rank)] + start; };
    };
    if (!is_for_all()) return combine(output_->data(), nullptr, input_.bytes(), at(0));
    // Each rank combines a slice and stores it to all outputs. No other rank reads or writes that slice of any tensor,
    // so they may be worked on in place.
    const std::vector<std::byte*> outputs = access.tensors(Loan::output, output_->data());
    const auto size = static_cast<std::size_t>(group.size());
    const auto rank = static_cast<std::size_t>(group.rank());
    const std::size_t slice = ((input_.bytes() + size - 1) / size + cell_unit - 1) / cell_unit * cell_unit;
    const Part mine = piece_of({output_->data(), output_->bytes()}, rank * slice, slice);
    for (std::size_t done = 0; done < mine.bytes; done += stored_at_once) {
      const std::size_t start = rank * slice + done;
      const std::size_t bytes = std::min(stored_at_once, mine.bytes - done);
      const auto output_of = [&](std::size_t offset) { return outputs[(rank + offset) % size] + start; };
      combine(output_of(0), output_of(1), bytes, at(start));
      for (std::size_t i = 2; i < size; ++i) copy_bytes(output_of(i), output_of(0), bytes);
    }
  }

  void lend_to(Loan& loan) const override {
    if (is_for_all()) loan.add(Loan::output, {output_->data(), output_->bytes()});
    if (is_read()) loan.add(0, {input_.data(), input_.bytes()});
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
  call.descriptor.root = static_cast<std::int16_t>(root);
  return std::make_unique<Reduce>(std::move(call), input.tensor(), seat.rank == root ? &output.tensor() : nullptr);
}

}  // namespace shim
