#include "tensors/tensor_view.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

namespace shim {
namespace {

// Calls copy(tensor element, packed element, bytes) over all elements in order; rows with stride 1 in one piece.
template <class Copy>
void for_each_run(const TensorView& view, std::byte* packed, const Copy& copy) {
  if (view.count() == 0) return;
  const std::size_t itemsize = bytes_of(view.dtype);
  const auto last = static_cast<std::size_t>(std::max(view.dimensions - 1, 0));
  const bool dense_rows = view.dimensions > 0 && view.strides[last] == 1;
  const std::int64_t row = view.dimensions > 0 ? view.shape[last] : 1;
  std::array<std::int64_t, max_dimensions> index{};
  for (;;) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < last; ++d) offset += index[d] * view.strides[d];
    std::byte* start = view.data + offset * static_cast<std::int64_t>(itemsize);
    if (dense_rows) {
      copy(start, packed, static_cast<std::size_t>(row) * itemsize);
      packed += static_cast<std::size_t>(row) * itemsize;
    } else {
      const std::int64_t stride = view.dimensions > 0 ? view.strides[last] * static_cast<std::int64_t>(itemsize) : 0;
      for (std::int64_t i = 0; i < row; ++i, packed += itemsize) copy(start + i * stride, packed, itemsize);
    }
    std::size_t d = last;
    while (d > 0 && ++index[d - 1] == view.shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

TensorView& TensorView::operator=(const TensorView& other) {
  data = other.data;
  dtype = other.dtype;
  dimensions = other.dimensions;
  read_only = other.read_only;
  device = other.device;
  std::copy_n(other.shape.begin(), dimensions, shape.begin());
  std::copy_n(other.strides.begin(), dimensions, strides.begin());
  return *this;
}

std::size_t TensorView::row_count() const {
  std::size_t count = 1;
  for (int d = 1; d < dimensions; ++d) count *= static_cast<std::size_t>(shape[static_cast<std::size_t>(d)]);
  return count;
}

void TensorView::set_contiguous() {
  std::int64_t stride = 1;
  for (int d = dimensions - 1; d >= 0; --d) {
    strides[static_cast<std::size_t>(d)] = stride;
    stride *= shape[static_cast<std::size_t>(d)];
  }
}

bool TensorView::is_contiguous() const {
  std::int64_t expected = 1;
  for (int d = dimensions - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

bool TensorView::overlaps_itself() const {
  if (is_contiguous()) return false;
  // Sorted by stride, each dimension must step over everything the smaller ones span.
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;
  for (std::size_t d = 0; d < static_cast<std::size_t>(dimensions); ++d) {
    if (shape[d] == 0) return false;
    if (shape[d] > 1) steps.emplace_back(std::abs(strides[d]), shape[d]);
  }
  std::sort(steps.begin(), steps.end());
  std::int64_t span = 0;
  for (const auto& [stride, extent] : steps) {
    if (stride <= span) return true;
    span += stride * (extent - 1);
  }
  return false;
}

std::string TensorView::describe() const {
  std::string text(name_of(dtype));
  text += " [";
  for (int d = 0; d < dimensions; ++d) text += (d > 0 ? ", " : "") + std::to_string(shape[static_cast<std::size_t>(d)]);
  return text + "]";
}

void pack(const TensorView& from, std::byte* to) {
  for_each_run(from, to, [](std::byte* element, std::byte* packed, std::size_t n) { std::memcpy(packed, element, n); });
}

void unpack(const std::byte* from, const TensorView& to) {
  for_each_run(to, const_cast<std::byte*>(from),
               [](std::byte* element, std::byte* packed, std::size_t n) { std::memcpy(element, packed, n); });
}

void Buffer::load() {
  if (!copied_ || stage_) return;
  reserve();
  pack(*copied_, stage_.get());
}

void Buffer::reserve() {
  if (!copied_ || stage_) return;
  stage_ = std::make_unique<std::byte[]>(bytes_);
  data_ = stage_.get();
}

void Buffer::store() {
  if (stage_) unpack(stage_.get(), *copied_);
}

void Buffer::detach() {
  if (copied_) return;
  copied_ = std::make_unique<TensorView>();
  copied_->data = data_;
  copied_->dtype = Dtype::uint8;
  copied_->dimensions = 1;
  copied_->shape[0] = static_cast<std::int64_t>(bytes_);
  copied_->set_contiguous();
}

std::pair<const std::byte*, const std::byte*> Buffer::range() const {
  if (!copied_) return {data_, data_ + bytes_};
  std::int64_t low = 0;
  std::int64_t high = 1;
  for (std::size_t d = 0; d < static_cast<std::size_t>(copied_->dimensions); ++d)
    (copied_->strides[d] < 0 ? low : high) += copied_->strides[d] * (copied_->shape[d] - 1);
  const auto itemsize = static_cast<std::int64_t>(bytes_of(copied_->dtype));
  return {copied_->data + low * itemsize, copied_->data + high * itemsize};
}

bool Buffer::shares_memory_with(const Buffer& other) const {
  if (bytes_ == 0 || other.bytes_ == 0) return false;
  const auto [low, high] = range();
  const auto [other_low, other_high] = other.range();
  return std::less<>()(low, other_high) && std::less<>()(other_low, high);
}

Parts::Parts(std::span<const TensorView> views, Counts counts) : counts_(std::move(counts)) {
  buffers_.reserve(views.size());
  for (const TensorView& view : views) buffers_.emplace_back(view);
  itemsize_ = views.empty() ? 0 : bytes_of(views.front().dtype);
  if (views.size() == 1 && !counts_.are_equal()) {
    starts_.resize(counts_.ranks());
    std::exclusive_scan(counts_.by_rank().begin(), counts_.by_rank().end(), starts_.begin(), std::uint64_t{0});
  }
}

std::vector<Buffer*> Parts::pointers() {
  std::vector<Buffer*> pointers;
  for (Buffer& buffer : buffers_) pointers.push_back(&buffer);
  return pointers;
}

void Parts::write_in_order() {
  for (std::size_t i = 1; i < buffers_.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (buffers_[i].shares_memory_with(buffers_[j])) {
        for (Buffer& buffer : buffers_) buffer.detach();  // stored at the end, one after the other
        return;
      }
}

Part Parts::operator[](int rank) const {
  const auto i = static_cast<std::size_t>(rank);
  const std::size_t bytes = counts_[i] * itemsize_;
  if (buffers_.size() > 1) return {buffers_[i].data(), bytes};
  return {buffers_.front().data() + (counts_.are_equal() ? i * bytes : starts_[i] * itemsize_), bytes};
}

void Parts::copy_to(std::byte* to) const {
  for (std::size_t rank = 0; rank < counts_.ranks(); ++rank) {
    const Part part = (*this)[static_cast<int>(rank)];
    if (part.bytes > 0) std::memcpy(to, part.data, part.bytes);
    to += part.bytes;
  }
}

void read_before_others_write(std::span<const Accesses> calls) {
  struct Written {
    const std::byte* low;
    const std::byte* highest;  // of all that begin here or lower
    const Buffer* buffer;
    std::size_t call;
  };
  std::vector<Written> written;
  for (std::size_t call = 0; call < calls.size(); ++call)
    for (const Buffer* buffer : calls[call].writes)
      written.push_back({buffer->range().first, buffer->range().second, buffer, call});
  std::ranges::sort(written, std::less<>(), &Written::low);
  for (std::size_t i = 1; i < written.size(); ++i)
    written[i].highest = std::max(written[i].highest, written[i - 1].highest, std::less<>());
  for (std::size_t call = 0; call < calls.size(); ++call)
    for (Buffer* buffer : calls[call].reads) {
      const auto [low, high] = buffer->range();
      auto other = std::ranges::upper_bound(written, low, std::less<>(), &Written::highest);
      const auto is_shared = [&](const Written& one) {
        return one.call != call && buffer->shares_memory_with(*one.buffer);
      };
      for (; other != written.end() && std::less<>()(other->low, high); ++other)
        if (is_shared(*other)) {
          buffer->detach();
          buffer->load();
          break;
        }
    }
}

}  // namespace shim
