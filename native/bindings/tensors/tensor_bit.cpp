#include "bindings/tensors/tensor_bit.hpp"

#include <atomic>
#include <bit>
#include <cstring>
#include <vector>

namespace nb = nanobind;

namespace shim::bindings {
namespace {

static_assert(sizeof(void*) == sizeof(std::uint64_t));

std::uint64_t word_of(const void* object, std::size_t index) {
  std::uint64_t word = 0;
  std::memcpy(&word, static_cast<const std::byte*>(object) + index * sizeof(word), sizeof(word));
  return word;
}

struct Sample {
  PyObject* tensor;
  std::uint64_t address;  // of its C++ object
  bool answer;
};

std::vector<Sample> read_samples(nb::handle samples) {
  std::vector<Sample> result;
  for (nb::handle sample : samples)
    result.push_back({nb::handle(sample[0]).ptr(), nb::cast<std::uint64_t>(sample[1]), nb::cast<bool>(sample[2])});
  return result;
}

// The first word behind the beginning of all Python objects that points to the C++ objects.
std::optional<std::size_t> find_pointer(const std::vector<Sample>& samples) {
  const std::size_t words =
      nb::cast<std::size_t>(nb::handle(samples.front().tensor).type().attr("__basicsize__")) / sizeof(void*);
  for (std::size_t i = sizeof(PyObject) / sizeof(void*); i < words; ++i) {
    bool points = true;
    for (const Sample& sample : samples) points = points && word_of(sample.tensor, i) == sample.address;
    if (points) return i;
  }
  return std::nullopt;
}

const void* at(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

}  // namespace

std::optional<TensorBit> TensorBit::find(nb::handle sample_list, std::size_t words) {
  const std::vector<Sample> samples = read_samples(sample_list);
  if (samples.empty()) return std::nullopt;
  const std::optional<std::size_t> pointer = find_pointer(samples);
  if (!pointer) return std::nullopt;
  std::optional<TensorBit> found;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t bits = ~std::uint64_t{0};  // which agree with all answers
    for (const Sample& sample : samples) {
      const std::uint64_t word = word_of(at(sample.address), i);
      bits &= sample.answer ? word : ~word;
    }
    if (bits == 0) continue;
    if (found || !std::has_single_bit(bits)) return std::nullopt;
    found = TensorBit(*pointer, i, bits);
  }
  return found;
}

bool TensorBit::is_set(nb::handle tensor) const { return (word_of(object_of(tensor), word_) & mask_) != 0; }

void TensorBit::set(nb::handle tensor, bool to) const {
  auto* const word = static_cast<std::uint64_t*>(const_cast<void*>(object_of(tensor))) + word_;
  if (to)
    std::atomic_ref(*word).fetch_or(mask_);
  else
    std::atomic_ref(*word).fetch_and(~mask_);
}

const void* TensorBit::object_of(nb::handle tensor) const { return at(word_of(tensor.ptr(), pointer_)); }

}  // namespace shim::bindings
