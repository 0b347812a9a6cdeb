// Operations in which the ranks read each other's tensors where they are, instead of through the rings: one copy.
//
// On arrival each rank says where its tensors lie. Whether all of them can be reached is agreed on before anything is
// written: from what the arrival lines say and, when somebody lends memory for the first time, or copying between
// processes has not been tried yet, from whether all ranks then get at it. In the end a rank waits until those that
// read its tensors, or wrote to them, have finished, because its caller may overwrite them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrival.hpp"
#include "copies.hpp"
#include "group.hpp"
#include "tensor_view.hpp"

namespace shim {

// What a rank says of its tensors on arrival. A place for each rank's part, or one for the whole.
class Loan {
 public:
  Loan(Group& group, std::uint64_t sequence);
  // The place of an all_reduce's output, beside its input's, which is 0.
  static constexpr std::size_t output = 1;

  void add(std::size_t index, const Part& part);
  // The parts for all ranks but `own`, each at its rank's place.
  void add_parts(const Parts& parts, int own);
  std::uint16_t flags() const;

 private:
  Group& group_;
  Place* places_;
  unsigned all_ = 0xffff;
  unsigned any_ = 0;
};

// Whether a rank that moves so many bytes should lend its tensors. Ranks need not agree: if one does not, none reads.
bool is_worth_lending(const Group& group, std::size_t bytes);

// The other ranks' tensors in one operation.
class DirectAccess {
 public:
  enum class Way { rings, mapped, copied };

  // `call` is this rank's, as all have agreed on it. All ranks come to the same way.
  DirectAccess(Group& group, const Agreement& agreement, const CallDescriptor& call);

  Way way() const { return way_; }
  // The memory of `peer` at its place `index`; mapped alone.
  std::byte* at(int peer, std::size_t index) const;
  // What is at the place `index` of each rank, in rank order; this rank's is `own`. Mapped alone.
  std::vector<const std::byte*> inputs(std::size_t index, const std::byte* own) const;
  // Fills `to` with what is at a place of `peer`.
  void copy(int peer, std::size_t index, const Part& to, const OutputCopy& copy_out) const;
  // Throws Failure(peer_lost) when a rank that was read from had given its tensors up; then waits until nobody needs
  // this rank's any more.
  void finish() const;

 private:
  // Who reads of whom in this operation; the same rule on all ranks.
  bool reads(int reader, int owner) const;
  bool map_all() const;
  bool agree_that(bool reached, unsigned attempt) const;

  Group& group_;
  const CallDescriptor& call_;
  std::uint64_t sequence_;
  Way way_ = Way::rings;
};

}  // namespace shim
