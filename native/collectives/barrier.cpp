// barrier: the arrival exchange that begins every operation is all of it.
#include "collectives/collectives.hpp"

namespace shim {
namespace {

class Barrier final : public Operation {
 public:
  explicit Barrier(std::string_view before) : Operation(Call(OperationKind::barrier, Dtype::none)) {
    if (!before.empty()) call_.set_before(before);
  }
};

}  // namespace

std::unique_ptr<Operation> make_barrier(Seat, std::string_view before) { return std::make_unique<Barrier>(before); }

}  // namespace shim
