// Copying bytes; past the caches where nobody reads them soon.
#pragma once

#include <cstddef>
#include <cstring>

#include "machine/thresholds.hpp"

namespace shim {

// std::memcpy, and no loop of ours: from a few KB on it is one instruction that claims whole lines without reading them
// first, and lines that another processor has read are slow to read back.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

// Copies without fetching what is overwritten, and without driving anything else out of the caches: for outputs that
// are larger than these. Before another thread reads them, finish_streaming() must have been called.
void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes);
void finish_streaming();

// How the outputs of one operation are written, which touches `bytes_of_all_ranks` together: streamed if these are more
// than the group's threshold for that.
class OutputCopy {
 public:
  OutputCopy(std::size_t bytes_of_all_ranks, const Thresholds& thresholds)
      : OutputCopy(bytes_of_all_ranks > thresholds.stream) {}
  explicit OutputCopy(bool streams) : streams_(streams) {}
  ~OutputCopy() {
    if (streams_) finish_streaming();
  }
  OutputCopy(const OutputCopy&) = delete;
  OutputCopy& operator=(const OutputCopy&) = delete;

  bool streams() const { return streams_; }
  void operator()(std::byte* to, const std::byte* from, std::size_t bytes) const {
    (streams_ ? stream_bytes : copy_bytes)(to, from, bytes);
  }

 private:
  bool streams_;
};

}  // namespace shim
