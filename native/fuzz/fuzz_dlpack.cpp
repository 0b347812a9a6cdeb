// Tensors as no library should describe them: whatever is not refused lies where it says, and is read and written
// there.
#include <array>
#include <vector>

#include "bindings/tensors/dlpack_view.hpp"
#include "fuzz/input.hpp"
#include "platform/failure.hpp"

using namespace shim;
using fuzz::expect;

namespace {

constexpr std::size_t memory_bytes = 4096;
constexpr std::size_t most_extents = 64;  // which the shape has room for; no more are looked at

__extension__ using Wide = __int128;

struct Described {
  DLTensor tensor{};
  std::array<std::int64_t, most_extents> shape{};
  std::array<std::int64_t, most_extents> strides{};
};

// Numbers as they are, or small ones, with which elements lie in the memory.
void describe(Described& described, fuzz::Input& input, std::byte* memory) {
  DLTensor& tensor = described.tensor;
  const auto choices = input.take<std::uint8_t>();
  const bool is_small = (choices & 1) != 0;
  const auto number = [&]() -> std::int64_t {
    return is_small ? input.take<std::int8_t>() : input.take<std::int64_t>();
  };
  tensor.device.device_type = static_cast<DLDeviceType>((choices & 2) != 0 ? input.take<std::int32_t>() : kDLCPU);
  tensor.dtype.code = input.take<std::uint8_t>();
  tensor.dtype.bits = input.take<std::uint8_t>();
  tensor.dtype.lanes = (choices & 4) != 0 ? input.take<std::uint16_t>() : 1;
  tensor.ndim = (choices & 8) != 0 ? input.take<std::int32_t>() : input.take<std::uint8_t>() % 6;
  tensor.byte_offset =
      (choices & 16) != 0 ? input.take<std::uint64_t>() : input.take<std::uint16_t>() % (memory_bytes + 1);
  tensor.data = (choices & 32) != 0 ? nullptr : memory;
  tensor.shape = (choices & 64) != 0 ? nullptr : described.shape.data();
  tensor.strides = (choices & 128) != 0 ? nullptr : described.strides.data();
  for (int d = 0; d < tensor.ndim && d < static_cast<int>(most_extents); ++d) {
    described.shape[static_cast<std::size_t>(d)] = number();
    described.strides[static_cast<std::size_t>(d)] = number();
  }
}

// Whether all elements lie in the memory.
bool is_inside(const TensorView& view, const std::byte* memory) {
  const auto itemsize = static_cast<Wide>(bytes_of(view.dtype));
  Wide low = reinterpret_cast<std::uintptr_t>(view.data);
  Wide high = low + itemsize;
  for (std::size_t d = 0; d < static_cast<std::size_t>(view.dimensions); ++d) {
    const Wide reach = static_cast<Wide>(view.strides[d]) * (view.shape[d] - 1) * itemsize;
    (reach < 0 ? low : high) += reach;
  }
  const auto begin = static_cast<Wide>(reinterpret_cast<std::uintptr_t>(memory));
  return low >= begin && high <= begin + static_cast<Wide>(memory_bytes);
}

void check(const TensorView& view, const DLTensor& tensor, std::vector<std::byte>& memory) {
  expect(view.dimensions == tensor.ndim && tensor.ndim >= 0 && tensor.ndim <= static_cast<int>(max_dimensions),
         "the dimensions are those that were described");
  expect(tensor.dtype.lanes == 1 && bytes_of(view.dtype) * 8 == tensor.dtype.bits, "an element has its bits");
  Wide bytes = bytes_of(view.dtype);
  for (std::size_t d = 0; d < static_cast<std::size_t>(view.dimensions); ++d) {
    expect(view.shape[d] >= 0 && view.shape[d] == tensor.shape[d], "an extent is what was described");
    bytes *= view.shape[d];
    expect(bytes <= INT64_MAX, "no memory is larger than it can be");
  }
  expect(bytes == static_cast<Wide>(view.bytes()), "the bytes are those of the elements");
  expect(bytes == 0 || view.data != nullptr, "what has elements has memory");
  (void)view.describe();
  (void)view.overlaps_itself();
  if (bytes == 0 || bytes > static_cast<Wide>(16 * memory_bytes) || !is_inside(view, memory.data())) return;
  const std::vector<std::byte> before = memory;
  std::vector<std::byte> packed(view.bytes());
  pack(view, packed.data());
  unpack(packed.data(), view);
  expect(memory == before, "what is written back is what was read");
  Buffer buffer(view);
  expect(buffer.shares_memory_with(Buffer(view)), "a tensor shares memory with itself");
  buffer.load();
  expect(std::memcmp(buffer.data(), packed.data(), packed.size()) == 0, "a buffer holds the elements");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  fuzz::Input input(data, bytes);
  std::vector<std::byte> memory(memory_bytes);
  for (std::size_t i = 0; i < memory_bytes; ++i) memory[i] = static_cast<std::byte>(i * 7 + i / 256);
  try {
    Described described;
    describe(described, input, memory.data());
    check(bindings::view_of(described.tensor, false, "input"), described.tensor, memory);
  } catch (const Failure& failure) {
    expect(failure.kind == FailureKind::tensor, "what is no tensor is a tensor's error");
  }
  return 0;
}
