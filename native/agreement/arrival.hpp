// How every operation begins: each rank says what it is about to do, and nobody goes on before all have agreed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "group/group.hpp"
#include "tensors/counts.hpp"
#include "tensors/tensor_view.hpp"

namespace shim {

// Why a call could not be made, and where in the program that was.
struct Refusal {
  std::string reason;
  std::string place;
};

// One rank's call of a collective, as it is compared with the others'.
struct Call {
  CallDescriptor descriptor;
  std::vector<std::uint64_t> sends;     // elements to each rank, where descriptor.sends is in_table
  std::vector<std::uint64_t> receives;  // elements from each rank, likewise
  const Refusal* refusal = nullptr;     // why it could not be made, if kind is refused; outlives this

  Call(OperationKind kind, Dtype dtype) {
    descriptor.kind = kind;
    descriptor.dtype = dtype;
  }
  void set_shape(const TensorView& view);
  void set_before(std::string_view text);  // of a barrier
  // Takes one number where all are the same, the table where they are not.
  void set_sends(const Counts& counts);
  void set_receives(const Counts& counts);
  bool is_varied() const {
    return descriptor.sends == CallDescriptor::in_table || descriptor.receives == CallDescriptor::in_table;
  }
  // Whether all ranks have the same table, in which what each one sends is as its own call says.
  bool has_common_table() const { return descriptor.kind == OperationKind::all_gather && is_varied(); }
};

// Equal on all ranks whose calls fit together, but for what is_varied() and has no common table. Of calls that do not
// fit it is equal once in 2^64 groups.
std::uint64_t fingerprint_of(const Call& call, const KeyedHash& hash);

// What was agreed on, the same on all ranks.
struct Agreement {
  bool is_inline;          // every contribution is in its rank's arrival line
  std::size_t largest;     // bytes of the largest part of any rank
  std::uint64_t sequence;  // of the operation
  unsigned loan_of_all;    // what holds of every rank's loan, and
  unsigned loan_of_any;    // of at least one's; see loans.hpp
};

// What a rank gives to an operation.
class Contribution {
 public:
  virtual std::size_t contributed_bytes() const = 0;
  virtual void write_contribution(std::byte* to) const = 0;
  // Says where the others can read it, if that may be worth it, and returns how: see loans.hpp.
  virtual std::uint16_t lend(Group& group, std::uint64_t sequence) const = 0;
  // Puts what the others need of this rank into its slot of the first step, if that is little enough to be worth it
  // before it is known that the ranks agree, and there is such a slot. Which one it has filled.
  virtual SlotSize fill_first_slot(Group& /* group */) const { return SlotSize::none; }
  // Whether it can be read from the arrival lines where the ranks' parts have different sizes, too. The same for all
  // ranks of an operation.
  virtual bool is_inline_if_varied() const { return false; }

 protected:
  ~Contribution() = default;
};

// Arrives at the group's next operation with `call` and the `contribution`, which goes into the line if it is small,
// and waits for all other ranks. Throws Failure(mismatch), on every rank, when the calls do not fit.
Agreement arrive(Group& group, const Call& call, const Contribution& contribution);

// Arrives with the news that this rank's call was wrong, and waits for nobody but for those who have not arrived at
// what was before.
void arrive_refused(Group& group, const Refusal& refusal);

// The same where nobody has to be waited for; otherwise does nothing and returns false.
bool arrive_refused_at_once(Group& group, const Refusal& refusal);

}  // namespace shim
