// barrier, and what the ranks agree by on how many calls they are going to begin as one: the arrival exchange that
// begins every operation is all of it.
#include "collectives.hpp"

namespace shim {
namespace {

class Barrier final : public Operation {
 public:
  explicit Barrier(Call&& call) : Operation(std::move(call)) {}
  std::size_t bytes() const override { return 0; }

 private:
  void load() override {}
  std::size_t contributed_bytes() const override { return 0; }
  void write_contribution(std::byte*) const override {}
  void read_lines(Group&, const Agreement&) override {}
  void read_rings(Group&, const Agreement&) override {}
  void read_directly(Group&, const Agreement&, const DirectAccess&) override {}
  void lend_to(Loan&) const override {}
  void store() override {}
};

}  // namespace

std::unique_ptr<Operation> make_barrier(Seat) {
  return std::make_unique<Barrier>(Call(OperationKind::barrier, Dtype::none));
}

std::unique_ptr<Operation> make_coalesced(Seat, std::int64_t calls) {
  Call call(OperationKind::coalesced, Dtype::none);
  call.descriptor.dimensions = 1;
  call.descriptor.shape[0] = calls;
  return std::make_unique<Barrier>(std::move(call));
}

}  // namespace shim
