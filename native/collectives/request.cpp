#include "collectives/request.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "collectives/reduce_kernels.hpp"

namespace shim {

// Takes memory, and gives it back, as the checked operation does.
class Request::Begun final : public Operation {
 public:
  Begun(Operation& checked, std::function<void()> move, bool is_carried)
      : Operation(Call(checked.call_)),
        checked_(checked),
        move_(std::move(move)),
        is_carried_(is_carried),
        carries_data_(is_carried && !is_on_device()) {}
  std::size_t bytes() const override { return checked_.bytes(); }
  Accesses accesses() override { return is_on_device() ? Accesses{} : checked_.accesses(); }

 private:
  bool is_on_device() const { return call_.descriptor.device != 0; }
  void load() override {
    if (!is_on_device()) checked_.load();
  }
  void store() override {
    if (!is_on_device()) checked_.store();
  }
  // But for what is carried, nothing goes with the arrival, and that as far as it fits there. Nothing is lent.
  std::size_t contributed_bytes() const override { return carries_data_ ? checked_.contributed_bytes() : 0; }
  void write_contribution(std::byte* to) const override {
    if (carries_data_) checked_.write_contribution(to);
  }
  SlotSize fill_first_slot(Group& group) const override {
    if (!carries_data_ || checked_.contributed_bytes() > most_with_arrival(group)) return SlotSize::none;
    const SlotSize filled = checked_.fill_first_slot(group);
    return filled == SlotSize::none && group.reserve_rings() ? checked_.fill_first_slot(group) : filled;
  }
  bool is_inline_if_varied() const override { return carries_data_ && checked_.is_inline_if_varied(); }
  void lend_to(Loan&) const override {}
  std::uint16_t lend(Group&, std::uint64_t) const override { return 0; }

  void read_lines(Group& group, const Agreement& agreement) override {
    if (carries_data_)
      checked_.read_lines(group, agreement);
    else
      carry_on(group);
  }
  void read_rings(Group& group, const Agreement& agreement) override {
    if (!carries_data_ || !has_come(group, agreement.sequence)) return carry_on(group);
    checked_.read_rings(group, agreement);
  }
  void read_directly(Group& group, const Agreement&, const DirectAccess&) override { carry_on(group); }

  // What is combined goes to each host as often as it has come from ranks of one: of more, they are to combine theirs
  // first.
  std::size_t most_with_arrival(const Group& group) const {
    const OperationKind kind = call_.descriptor.kind;
    const bool is_combined = kind == OperationKind::all_reduce || kind == OperationKind::reduce;
    return group.layout().large_slot_bytes() / (is_combined ? group.most_of_a_host : 1);
  }

  // Whether all that the ranks give has come with their arrivals: all of them come to the same answer.
  bool has_come(Group& group, std::uint64_t sequence) const {
    const CallDescriptor& call = call_.descriptor;
    const bool is_for_root = call.kind == OperationKind::gather || call.kind == OperationKind::reduce;
    bool needs_rings = false;
    for (int rank = 0; rank < group.size(); ++rank) {
      const ArrivalLine& line = group.arrival(rank, sequence);
      if (line.bytes > 0 && line.filled == SlotSize::none && !(is_for_root && rank == call.root)) return false;
      needs_rings = needs_rings || line.filled == SlotSize::large;
    }
    if (needs_rings && !group.reserve_rings()) throw std::bad_alloc();
    return true;
  }

  void carry_on(Group& group) const {
    try {
      move_();
    } catch (const Failure& failure) {
      if (is_carried_ && (failure.kind == FailureKind::mismatch || failure.kind == FailureKind::memory)) throw;
      group.fail(failure);
    } catch (const Interrupted&) {
      group.give_up_interrupted();
      throw;
    }
  }

  Operation& checked_;
  std::function<void()> move_;
  bool is_carried_;
  bool carries_data_;
};

namespace {

bool gives_each_rank_a_part(OperationKind kind) {
  return kind == OperationKind::scatter || kind == OperationKind::reduce_scatter || kind == OperationKind::all_to_all;
}
bool gets_a_part_of_each_rank(OperationKind kind) {
  return kind == OperationKind::all_gather || kind == OperationKind::gather || kind == OperationKind::all_to_all;
}

}  // namespace

Request::Request(Seat seat, std::unique_ptr<Operation> checked) : seat_(seat), checked_(std::move(checked)) {}

bool Request::put_on_device(int type) {
  const Accesses all = checked_->accesses();
  const auto is_copied = [](const Buffer* buffer) { return buffer->goes_through_copy(); };
  if (std::ranges::any_of(all.reads, is_copied) || std::ranges::any_of(all.writes, is_copied)) return false;
  checked_->call_.descriptor.device = static_cast<std::int16_t>(type);
  return true;
}

std::vector<Part> Request::inputs() {
  return parts_of(checked_->accesses().reads, gives_each_rank_a_part(call().kind), true);
}

std::vector<Part> Request::outputs() {
  return parts_of(checked_->accesses().writes, gets_a_part_of_each_rank(call().kind), false);
}

std::vector<Part> Request::parts_of(const std::vector<Buffer*>& buffers, bool has_one_for_each_rank,
                                    bool is_sent) const {
  std::vector<Part> parts;
  if (!has_one_for_each_rank || buffers.size() != 1) {
    for (const Buffer* buffer : buffers) parts.push_back({buffer->data(), buffer->bytes()});
    return parts;
  }
  const std::uint64_t each = is_sent ? call().sends : call().receives;
  const std::vector<std::uint64_t>& table = is_sent ? checked_->call_.sends : checked_->call_.receives;
  std::byte* start = buffers.front()->data();
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(seat_.size); ++rank) {
    const std::uint64_t count = each == CallDescriptor::in_table ? table[rank] : each;
    parts.push_back({start, static_cast<std::size_t>(count) * bytes_of(call().dtype)});
    start += parts.back().bytes;
  }
  return parts;
}

void Request::combine(std::span<std::byte> output, std::span<const std::byte* const> of_ranks,
                      std::span<const double> factors) const {
  const Kernel kernel = fastest_kernel(call().dtype, call().op);
  kernel(output.data(), nullptr, of_ranks.data(), of_ranks.size(), factors.data(),
         output.size() / bytes_of(call().dtype));
}

std::unique_ptr<Operation> Request::begun(std::function<void()> move, bool is_carried) {
  return std::make_unique<Begun>(*checked_, std::move(move), is_carried);
}

}  // namespace shim
