// A digest of bytes that come in pieces, under a key; keyed_hash.hpp is quicker for a few numbers.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "platform/keyed_hash.hpp"

namespace shim {

// NH (Black et al., UMAC, 1999) over blocks, whose sums go through SipHash-2-4 (Aumasson and Bernstein, 2012): contents
// that differ have equal digests under about one of 2^63 keys, and there are none that have so under every key. How the
// bytes were divided into pieces makes no difference. Files hold its values: another way to compute them is another
// version.
class Digest {
 public:
  explicit Digest(std::uint64_t key) {
    for (std::uint64_t& word : keys_) word = next_number(key);
    for (std::uint64_t& word : state_) word ^= next_number(key);
  }

  Digest& add(std::string_view text) {
    add(reinterpret_cast<const std::byte*>(text.data()), text.size());
    return *this;
  }
  void add(const std::byte* bytes, std::size_t count) {
    if (count == 0) return;
    total_ += count;
    if (filled_ > 0) {
      const std::size_t more = count < block - filled_ ? count : block - filled_;
      std::memcpy(rest_.data() + filled_, bytes, more);
      filled_ += more;
      bytes += more;
      count -= more;
      if (filled_ < block) return;
      take(rest_.data());
      filled_ = 0;
    }
    for (; count >= block; bytes += block, count -= block) take(bytes);
    std::memcpy(rest_.data(), bytes, count);
    filled_ = count;
  }

  std::uint64_t value() const {
    Digest last = *this;
    if (filled_ > 0) {
      std::memset(last.rest_.data() + filled_, 0, block - filled_);
      last.take(last.rest_.data());
    }
    last.absorb(total_);
    last.state_[2] ^= 0xff;
    for (int round = 0; round < 4; ++round) last.mix();
    return last.state_[0] ^ last.state_[1] ^ last.state_[2] ^ last.state_[3];
  }

 private:
  static constexpr std::size_t words = 32, block = 8 * words;
  __extension__ using Wide = unsigned __int128;

  void take(const std::byte* bytes) {
    Wide sum = 0;
    for (std::size_t i = 0; i < words; i += 2) {
      std::uint64_t pair[2];
      std::memcpy(pair, bytes + 8 * i, sizeof(pair));
      sum += Wide{pair[0] + keys_[i]} * (pair[1] + keys_[i + 1]);
    }
    absorb(static_cast<std::uint64_t>(sum));
    absorb(static_cast<std::uint64_t>(sum >> 64));
  }

  void absorb(std::uint64_t word) {
    state_[3] ^= word;
    mix();
    mix();
    state_[0] ^= word;
  }

  void mix() {
    auto& [a, b, c, d] = state_;
    a += b, c += d, b = std::rotl(b, 13) ^ a, d = std::rotl(d, 16) ^ c, a = std::rotl(a, 32);
    c += b, a += d, b = std::rotl(b, 17) ^ c, d = std::rotl(d, 21) ^ a, c = std::rotl(c, 32);
  }

  std::array<std::uint64_t, words> keys_;
  std::array<std::uint64_t, 4> state_{0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261, 0x7465646279746573};
  std::array<std::byte, block> rest_{};
  std::size_t filled_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace shim
