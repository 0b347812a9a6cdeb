// Operations in which the ranks read each other's tensors where they are, instead of through the rings: one copy.
//
// On arrival each rank says where its tensors lie. Whether all of them can be reached is agreed on before anything is
// written: from what the arrival lines say and, when somebody lends memory for the first time, from whether all ranks
// could map it. In the end a rank waits until those that read its tensors, or wrote to them, have finished, because its
// caller may overwrite them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agreement/arrival.hpp"
#include "group/group.hpp"
#include "tensors/tensor_view.hpp"

namespace shim {

// What a rank says of its tensors on arrival: a place for each rank's part, or one for the whole.
class Loan {
 public:
  // The place of an all_reduce's output, beside its input's, which is 0.
  static constexpr std::size_t output = 1;

  Loan(Group& group, std::uint64_t sequence);
  void add(std::size_t index, const Part& part);
  // The parts for all ranks but `own`, each at its rank's place.
  void add_parts(const Parts& parts, int own);
  std::uint16_t flags() const;

 private:
  Group& group_;
  Place* places_;
  unsigned all_ = ~0u;
  unsigned any_ = 0;
};

// Whether a rank that moves so many bytes should lend its tensors. Ranks need not agree: if one does not, none reads.
bool is_worth_lending(const Group& group, std::size_t bytes);

// Where ranks have used each other's tensors: waits until all ranks have come here. Throws Failure(peer_lost) when one
// has given its tensors up before.
void finish_together(Group& group, std::uint64_t sequence);

inline constexpr std::size_t direct_chunk = 128 * 1024;  // bytes that are read from one rank before the next

// The other ranks' tensors in one operation.
class DirectAccess {
 public:
  // All ranks come to the same answer whether it is given.
  DirectAccess(Group& group, const Agreement& agreement);

  bool is_given() const { return is_given_; }
  // What each rank has at its place `index`, in rank order, this rank `own`; null where there are no bytes. The ranks
  // may use it until they have finished.
  std::vector<std::byte*> tensors(std::size_t index, std::byte* own) const;
  void finish() const { finish_together(group_, sequence_); }

 private:
  bool map_all() const;
  bool agree_that_mapped(bool mapped) const;

  Group& group_;
  std::uint64_t sequence_;
  bool is_given_ = false;
};

}  // namespace shim
