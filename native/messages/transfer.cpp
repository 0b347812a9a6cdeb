#include "messages/transfer.hpp"

#include <new>

#include "group/descriptions.hpp"

namespace shim {

std::string elements_in(Dtype dtype, std::uint64_t bytes) {
  if (dtype == Dtype::device_message) return "a tensor on a device";
  const std::size_t count = bytes / bytes_of(dtype);
  return std::to_string(count) + (count == 1 ? " element of " : " elements of ") + std::string(name_of(dtype));
}

std::string Transfer::describe(const Group& group) const {
  const std::string where = peer == any_rank ? "any rank" : rank_label(group, peer);
  return (is_send ? "sending " : "receiving ") + elements_in(dtype, buffer.bytes()) + (is_send ? " to " : " from ") +
         where + (is_of_engine(tag) ? " for a collective" : " with tag " + std::to_string(tag));
}

void Transfer::prepare() {
  try {
    is_send ? buffer.load() : buffer.reserve();
  } catch (const std::bad_alloc&) {
    throw Failure(FailureKind::memory, "there is not enough memory to copy {tensor}, which is not contiguous");
  }
}

}  // namespace shim
