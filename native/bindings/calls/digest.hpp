// A digest of bytes that come in pieces, for comparing what two runs have computed. It is fast, not secure.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace shim::bindings {

// Four lanes take eight bytes each in turn, so that a multiplication need not wait for the one before. How the bytes
// were divided into pieces makes no difference. Files hold its values: another way to compute them is another version.
class Digest {
 public:
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
    std::uint64_t all = total_;
    for (const std::uint64_t lane : last.lanes_) all = mixed(all ^ mixed(lane));
    return all;
  }

 private:
  static constexpr std::size_t block = 32;
  static constexpr std::uint64_t odd = 0xd6e8feb86659fd93;  // as the other one: about half of its bits are set

  static constexpr std::uint64_t other_odd = 0x9e6c63d0876a9a47;

  void take(const std::byte* bytes) {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + 8 * i, 8);
      lanes_[i] =
          std::rotl((lanes_[i] ^ (word * odd)) * other_odd, 29);  // a bit alone would meet its like in a later word
    }
  }

  static std::uint64_t mixed(std::uint64_t bits) {
    for (int round = 0; round < 2; ++round) bits = (bits ^ (bits >> 32)) * odd;
    return bits ^ (bits >> 32);
  }

  std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
  std::array<std::byte, block> rest_{};
  std::size_t filled_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace shim::bindings
