// The bytes of a fuzzer's input, taken one value after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace shim::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t bytes)
      : rest_(reinterpret_cast<const char*>(data), data == nullptr ? 0 : bytes) {}

  bool is_empty() const { return rest_.empty(); }

  // The next value; what the input is too short for is zero.
  template <class T>
  T take() {
    T value{};
    const std::size_t bytes = std::min(sizeof(T), rest_.size());
    std::memcpy(&value, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    return value;
  }

  std::string take_text(std::size_t most) {
    const std::string text(rest_.substr(0, most));
    rest_.remove_prefix(text.size());
    return text;
  }

 private:
  std::string_view rest_;
};

// What must hold of every input; where it does not, the fuzzer keeps the input.
inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace shim::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);
