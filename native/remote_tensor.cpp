#include "remote_tensor.hpp"

#include "copies.hpp"
#include "process.hpp"

namespace shim {

bool RemoteTensor::ends_can_be_read(std::size_t bytes) const {
  return mapped_ != nullptr || can_read_ends(process_, address_, bytes);
}

bool RemoteTensor::read(std::size_t start, std::byte* to, std::size_t bytes) const {
  if (mapped_ == nullptr) return read_memory(process_, address_ + start, to, bytes);
  OutputCopy{streams_}(to, mapped_.get() + start, bytes);
  return true;
}

bool RemoteTensor::write(std::size_t start, const std::byte* from, std::size_t bytes) const {
  if (mapped_ == nullptr) return write_memory(process_, address_ + start, from, bytes);
  OutputCopy{streams_}(mapped_.get() + start, from, bytes);
  return true;
}

}  // namespace shim
