// One message as its sender or its receiver sees it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "platform/failure.hpp"
#include "tensors/tensor_view.hpp"

namespace shim {

class Group;

// "3 elements of float32".
std::string elements_in(Dtype dtype, std::uint64_t bytes);

// One send or receive. Owned by its task; PointToPoint holds it from post() until it has ended or was withdrawn.
struct Transfer {
  static constexpr int any_rank = -1;
  // Of the messages that a collective is made of; those of users have 32 bits.
  static constexpr std::int64_t collective_tag = std::int64_t{1} << 32;
  // Engines above this one have three more for data that goes beside a collective's.
  static constexpr bool is_of_engine(std::int64_t tag) { return tag >= collective_tag && tag <= collective_tag + 3; }

  Transfer(const TensorView& view, bool is_send, int peer, std::int64_t tag)
      : buffer(view), dtype(view.dtype), is_send(is_send), peer(peer), tag(tag) {}

  // Throws Failure(memory) when there is none for a copy of the tensor.
  void prepare();
  Accesses accesses() { return is_send ? Accesses{{&buffer}, {}} : Accesses{{}, {&buffer}}; }
  std::string describe(const Group& group) const;

  Buffer buffer;
  Dtype dtype;
  bool is_send;
  int peer;  // of a receive, any_rank takes a message of whichever rank
  std::int64_t tag;
  int source = -1;                      // of an ended receive
  std::atomic<std::uint64_t> moved{0};  // bytes
  std::uint64_t number = 0;             // of the message in its channel
  bool is_offered = false;              // and was neither declined nor taken yet
  bool was_declined = false;
  bool is_refused = false;  // there is no memory for the channel of a send, of which its receiver hears
  std::optional<Failure> failure;
  std::atomic<bool> ended{false};
};

}  // namespace shim
