// A checked call whose data is not moved by its Operation: for engines that are made of messages.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collectives/collectives.hpp"

namespace shim {

// Has the tensors of a checked call as consecutive bytes, by rank, and what the ranks have to agree on. Does not own
// the tensors' memory. The parts hold the elements while the operation that was `begun` moves them.
class Request {
 public:
  Request(Seat seat, std::unique_ptr<Operation> checked);

  const CallDescriptor& call() const { return checked_->call_.descriptor; }
  // From now on the call is about tensors on a device of this type: the host reads and writes none of them, and only
  // `move` does. Returns false, and changes nothing, where one of them would have to go through a copy.
  bool put_on_device(int type);
  bool is_on_device() const { return call().device != 0; }
  // One part, or where the call gives or gets one for each rank, so many; none on a rank that gives or gets nothing.
  std::vector<Part> inputs();
  std::vector<Part> outputs();
  // For who moves the data without a group: before, and afterwards.
  void load() { checked_->load(); }
  void store() { checked_->store(); }
  // Combines the bytes of all ranks, in their order, into those of `output`, which may be one of them.
  void combine(std::span<std::byte> output, std::span<const std::byte* const> of_ranks,
               std::span<const double> factors) const;

  // Arrives with the call, and when all ranks have agreed, has `move` move the data.
  // What `move` throws gives the group up. The request must outlive the operation.
  // In a group with a carrier (`is_carried`) what fits into the arrivals goes with them, and `move` is for the rest; it
  // may throw a mismatch, or that there is no memory, on all ranks, and the group goes on.
  std::unique_ptr<Operation> begun(std::function<void()> move, bool is_carried);

 private:
  class Begun;
  std::vector<Part> parts_of(const std::vector<Buffer*>& buffers, bool has_one_for_each_rank, bool is_sent) const;

  Seat seat_;
  std::unique_ptr<Operation> checked_;
};

}  // namespace shim
