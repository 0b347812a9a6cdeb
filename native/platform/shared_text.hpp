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

// Copies `text` to `into`, which has room for so many bytes, and returns how many it has written. A longer text ends
// with its last whole word that fits, and "..."; one long word is cut between two characters of UTF-8. Takes no memory.
inline std::size_t copy_fitting(std::string_view text, char* into, std::size_t bytes) {
  if (text.size() <= bytes) return text.copy(into, bytes);
  constexpr std::string_view more = "...";
  std::size_t end = bytes - more.size();
  const std::size_t word = text.substr(0, end + 1).rfind(' ');
  if (word != std::string_view::npos && word > end / 2) end = word;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.copy(into, end);
  return end + more.copy(into + end, more.size());
}

// Up to `capacity` bytes; a longer text is shortened. Zeroed memory is an empty one.
template <std::size_t capacity>
class SharedText {
  static_assert(capacity % sizeof(std::uint64_t) == 0);

 public:
  void write(std::string_view text) {
    Words next{};
    copy_fitting(text, reinterpret_cast<char*>(next.data()), capacity);
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
