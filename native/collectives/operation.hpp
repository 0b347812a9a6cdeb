// A prepared collective of one rank.
#pragma once

#include <string>

#include "agreement/arrival.hpp"
#include "collectives/direct.hpp"
#include "group/group.hpp"
#include "tensors/tensor_view.hpp"

namespace shim {

// Made and checked by one thread, carried out once by that thread or another. Does not own the tensors' memory.
// After a Failure(mismatch), and a Failure(memory), no output has been written; after any other they are undefined.
class Operation : private Contribution {
 public:
  virtual ~Operation() = default;
  // Carries it out, which one thread of the group may do at a time. Throws Failure or Interrupted.
  void execute(Group& group);
  // What it moves on this rank, to tell large operations from small ones.
  virtual std::size_t bytes() const = 0;
  // What it reads and writes on this rank.
  virtual Accesses accesses() = 0;

 protected:
  explicit Operation(Call&& call) : call_(std::move(call)) {}

  virtual void load() = 0;                                                // make inputs readable as bytes
  virtual void read_lines(Group& group, const Agreement& agreement) = 0;  // small: everything is in the arrival lines
  virtual void read_rings(Group& group, const Agreement& agreement) = 0;  // large
  // Large, where the others' tensors can be reached. The outputs are the same, bit by bit.
  virtual void read_directly(Group& group, const Agreement& agreement, const DirectAccess& access) = 0;
  // Adds what the others read of this rank's tensors.
  virtual void lend_to(Loan& loan) const = 0;
  virtual void store() = 0;  // bring staged outputs to their tensors

  Call call_;

 private:
  friend class Request;
  void prepare(Group& group);    // without memory for it, refuses the call, of which the others know nothing yet
  void take_part(Group& group);  // whatever goes wrong in it on this rank, no other waits for it
  [[noreturn]] static void give_up(Group& group, const std::string& cause);
  void read_large(Group& group, const Agreement& agreement);
  std::uint16_t lend(Group& group, std::uint64_t sequence) const override;
};

}  // namespace shim
