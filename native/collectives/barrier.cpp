// barrier: the arrival exchange that begins every operation is all of it.
#include "collectives/collectives.hpp"

namespace shim {
namespace {

class Barrier final : public Operation {
 public:
  explicit Barrier(std::string_view before) : Operation(Call(OperationKind::barrier, Dtype::none)) {
    if (!before.empty()) call_.set_before(before);
  }
  std::size_t bytes() const override { return 0; }
  Accesses accesses() override { return {}; }

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

std::unique_ptr<Operation> make_barrier(Seat, std::string_view before) { return std::make_unique<Barrier>(before); }

}  // namespace shim
