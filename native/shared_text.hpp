// Text in shared memory that one thread writes and any other may read at any time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace shim {

// As much of `text` from its beginning as fits into so many bytes, in whole characters of UTF-8.
inline std::string_view fitting(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

// Up to `capacity` bytes; what is longer is cut. Zeroed memory is an empty one.
template <std::size_t capacity>
class SharedText {
  static_assert(capacity % sizeof(std::uint64_t) == 0);

 public:
  void write(std::string_view text) {
    Words next{};
    const std::string_view kept = fitting(text, capacity);
    std::memcpy(next.data(), kept.data(), kept.size());
    changes_.fetch_add(1);
    for (std::size_t i = 0; i < words; ++i) words_[i].store(next[i]);
    changes_.fetch_add(1);
  }

  // Empty, too, where a writer died in the middle, or writes again and again.
  std::string read() const {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const std::uint32_t before = changes_.load();
      if (before % 2 != 0) continue;
      Words copy;
      for (std::size_t i = 0; i < words; ++i) copy[i] = words_[i].load();
      if (changes_.load() != before) continue;
      const char* bytes = reinterpret_cast<const char*>(copy.data());
      return {bytes, ::strnlen(bytes, capacity)};
    }
    return {};
  }

 private:
  static constexpr std::size_t words = capacity / sizeof(std::uint64_t);
  using Words = std::array<std::uint64_t, words>;

  std::atomic<std::uint32_t> changes_;  // odd while it is being written
  std::atomic<std::uint64_t> words_[words];
};

}  // namespace shim
