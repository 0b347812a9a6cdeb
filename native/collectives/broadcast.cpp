// broadcast: the root fills its ring, the others copy out of it. Root: S bytes in; others: S bytes out.
// Direct, where all tensors lie in shared memory: (N-1)/N*S copied by each rank.
#include "collectives/collectives.hpp"
#include "collectives/exchange.hpp"

namespace shim {
namespace {

// A tensor of a few pieces goes in quarters where all ranks are awake: the others read while the root still writes.
std::size_t piece_for(const Group& group, std::size_t bytes) {
  constexpr std::size_t least = 32 * 1024;
  const std::size_t most = group.thresholds().piece;
  if (group.is_crowded() || group.carrier != nullptr || bytes < 4 * least) return most;
  const std::size_t quarter = (bytes / 4 + cell_unit) / cell_unit * cell_unit;
  return std::clamp(quarter, std::min(least, most), most);
}

class Broadcast final : public Operation {
 public:
  Broadcast(Call&& call, Seat seat, const TensorView& tensor, int root)
      : Operation(std::move(call)), is_root_(seat.rank == root), root_(root), tensor_(tensor) {}
  std::size_t bytes() const override { return tensor_.bytes(); }
  Accesses accesses() override { return is_root_ ? Accesses{{&tensor_}, {}} : Accesses{{}, {&tensor_}}; }

 private:
  void load() override { is_root_ ? tensor_.load() : tensor_.reserve(); }
  std::size_t contributed_bytes() const override { return is_root_ ? tensor_.bytes() : 0; }
  void write_contribution(std::byte* to) const override { copy_bytes(to, tensor_.data(), tensor_.bytes()); }
  SlotSize fill_first_slot(Group& group) const override {
    if (tensor_.bytes() > group.thresholds().piece) return SlotSize::none;
    const std::size_t first = std::min(tensor_.bytes(), piece_for(group, tensor_.bytes()));
    const SlotSize slot = Exchange::first_slot(group, slot_for(tensor_.bytes()));
    if (slot != SlotSize::none)
      group.ring_stores().copy(group.ring_slot(group.rank(), group.steps, slot), tensor_.data(), first);
    return slot;
  }
  void read_lines(Group& group, const Agreement& agreement) override {
    if (!is_root_) copy_bytes(tensor_.data(), group.arrival(root_, agreement.sequence).payload, tensor_.bytes());
  }
  void read_rings(Group& group, const Agreement& agreement) override {
    Exchange exchange(group, slot_for(agreement.largest), agreement.largest, piece_for(group, agreement.largest));
    const Part whole{tensor_.data(), tensor_.bytes()};
    const OutputCopy copy_out(tensor_.bytes() * static_cast<std::size_t>(group.size()), group.thresholds());
    exchange.run(
        [&](std::uint64_t step) {
          if (!is_root_) return;
          const Part piece = piece_of(whole, exchange.start_of(step), exchange.chunk());
          group.ring_stores().copy(exchange.own_slot(step), piece.data, piece.bytes);
        },
        [&](std::uint64_t step) {
          if (is_root_) return;
          const Part piece = piece_of(whole, exchange.start_of(step), exchange.chunk());
          const std::byte* slot = exchange.slot_of(root_, step);
          copy_out(piece.data, slot, piece.bytes);
          if (group.size() == 2) claim_read(group, slot, piece.bytes);
        });
  }
  // The root, which would have nothing to do, stores its share to the others' tensors; the rest they copy themselves.
  void read_directly(Group& group, const Agreement&, const DirectAccess& access) override {
    const auto size = static_cast<std::size_t>(group.size());
    const std::size_t share = tensor_.bytes() / size / cell_unit * cell_unit;
    const OutputCopy copy_out(tensor_.bytes() * (size - 1), group.thresholds());
    const std::vector<std::byte*> tensors = access.tensors(0, tensor_.data());
    if (!is_root_)
      return copy_out(tensor_.data() + share, tensors[static_cast<std::size_t>(root_)] + share,
                      tensor_.bytes() - share);
    for (std::size_t start = 0; start < share; start += direct_chunk)
      for (std::byte* tensor : tensors)
        copy_out(tensor + start, tensor_.data() + start, std::min(direct_chunk, share - start));
  }

  void lend_to(Loan& loan) const override { loan.add(0, {tensor_.data(), tensor_.bytes()}); }

  void store() override {
    if (!is_root_) tensor_.store();
  }

  bool is_root_;
  int root_;
  Buffer tensor_;
};

}  // namespace

std::unique_ptr<Operation> make_broadcast(Seat seat, const TensorArgument& tensor, int root) {
  check_rank("root", root, seat.size);
  if (seat.rank != root) check_writable(tensor);
  Call call(OperationKind::broadcast, tensor.tensor().dtype);
  call.descriptor.root = static_cast<std::int16_t>(root);
  call.descriptor.sends = call.descriptor.receives = tensor.tensor().count();
  call.descriptor.largest = tensor.tensor().bytes();
  call.set_shape(tensor.tensor());
  return std::make_unique<Broadcast>(std::move(call), seat, tensor.tensor(), root);
}

}  // namespace shim
