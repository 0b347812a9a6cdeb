// A prepared collective of one rank.
#pragma once

#include "arrival.hpp"
#include "group.hpp"
#include "tensor_view.hpp"

namespace shim {

// Made and checked by one thread, carried out once by that thread or another. Does not own the tensors' memory.
// After a Failure(mismatch) no output has been written; after any other the outputs are undefined.
class Operation : private Contribution {
 public:
  virtual ~Operation() = default;
  // Carries it out, which one thread of the group may do at a time. Throws Failure or Interrupted.
  void execute(Group& group);
  // What it moves on this rank, to tell large operations from small ones.
  virtual std::size_t bytes() const = 0;

 protected:
  explicit Operation(Call call) : call_(std::move(call)) {}

  virtual void load() = 0;                                                // make inputs readable as bytes
  virtual void read_lines(Group& group, const Agreement& agreement) = 0;  // small: everything is in the arrival lines
  virtual void read_rings(Group& group, const Agreement& agreement) = 0;  // large
  virtual void store() = 0;                                               // bring staged outputs to their tensors

  Call call_;
};

}  // namespace shim
