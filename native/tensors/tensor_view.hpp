// A tensor as the engine sees it: where its elements are. And the parts of it that go to, or come from, each rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensors/counts.hpp"
#include "tensors/devices.hpp"
#include "tensors/dtypes.hpp"

namespace shim {

struct TensorView {
  std::byte* data = nullptr;
  Dtype dtype = Dtype::none;
  int dimensions = 0;
  bool read_only = false;
  Device device;
  std::array<std::int64_t, max_dimensions> shape;    // the first `dimensions` of them, which are what is copied
  std::array<std::int64_t, max_dimensions> strides;  // likewise; elements

  TensorView() = default;
  // Copying and clearing all of the shape's room took a third of a small call.
  TensorView(const TensorView& other) { *this = other; }
  TensorView& operator=(const TensorView& other);

  std::size_t count() const {
    std::size_t count = 1;
    for (int d = 0; d < dimensions; ++d) count *= static_cast<std::size_t>(shape[static_cast<std::size_t>(d)]);
    return count;
  }
  std::size_t bytes() const { return count() * bytes_of(dtype); }
  // Elements per row of dimension 0.
  std::size_t row_count() const;
  bool is_contiguous() const;
  // Sets the strides that the shape has without gaps.
  void set_contiguous();
  // Whether two elements share memory, as in an expanded tensor.
  bool overlaps_itself() const;
  std::string describe() const;  // float32 [2, 3]
};

// Copies the elements of a strided tensor to or from consecutive memory.
void pack(const TensorView& from, std::byte* to);
void unpack(const std::byte* from, const TensorView& to);

struct Part {
  std::byte* data;
  std::size_t bytes;
};

// A tensor whose elements an operation reads or writes as consecutive bytes; a strided one goes through a copy.
class Buffer {
 public:
  explicit Buffer(const TensorView& view) : data_(view.data), bytes_(view.bytes()) {
    if (!view.is_contiguous()) copied_ = std::make_unique<TensorView>(view);
  }

  std::size_t bytes() const { return bytes_; }
  std::byte* data() const { return data_; }
  bool goes_through_copy() const { return copied_ != nullptr; }

  // Before an operation: make data() hold the elements (load) or room for them (reserve). Loaded again, it holds what
  // it held.
  void load();
  void reserve();
  // After it: bring what was written to data() into the tensor.
  void store();
  // Goes through a copy from now on, because the operation writes to the tensor's memory by another way too.
  void detach();
  bool shares_memory_with(const Buffer& other) const;

  // From the tensor's first byte to behind its last.
  std::pair<const std::byte*, const std::byte*> range() const;

 private:
  std::byte* data_;  // the tensor's, or once there is one, the copy's
  std::size_t bytes_;
  std::unique_ptr<TensorView> copied_;  // the tensor, when it goes through a copy
  std::unique_ptr<std::byte[]> stage_;
};

// One tensor or a list of them, as `ranks` parts of given element counts.
class Parts {
 public:
  Parts() = default;
  // `counts` are the elements of each rank's part; there is one view, or one for each part.
  Parts(std::span<const TensorView> views, Counts counts);

  bool empty() const { return buffers_.empty(); }
  std::size_t largest_bytes() const { return counts_.largest() * itemsize_; }
  std::size_t total_bytes() const { return counts_.total() * itemsize_; }
  Part operator[](int rank) const;
  // For outputs: where two share memory, the one of the later rank is written last, whatever the order of the data.
  void write_in_order();
  // Copies all parts to one place, in rank order.
  void copy_to(std::byte* to) const;
  std::vector<Buffer>& buffers() { return buffers_; }
  std::vector<Buffer*> pointers();
  const std::vector<Buffer>& buffers() const { return buffers_; }

 private:
  std::vector<Buffer> buffers_;
  Counts counts_;
  std::vector<std::uint64_t> starts_;  // element offsets of different parts of one buffer
  std::size_t itemsize_ = 0;
};

// The tensors that a call reads, and those that it writes.
struct Accesses {
  std::vector<Buffer*> reads;
  std::vector<Buffer*> writes;
};

// Of calls that begin together: each reads at once what another one writes, as if none had begun.
void read_before_others_write(std::span<const Accesses> calls);

}  // namespace shim
