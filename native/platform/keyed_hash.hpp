// A hash of a few numbers, for hot paths: two lists that differ have the same only by chance. See digest.hpp for bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shim {

// The generator SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
inline std::uint64_t next_number(std::uint64_t& seed) {
  std::uint64_t number = seed += 0x9e3779b97f4a7c15ULL;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9ULL;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebULL;
  return number ^ (number >> 31);
}

// Multilinear hashing (Lemire and Kaser, "Strongly universal string hashing is fast", 2014): the upper half of the sum
// of each number times a key of 128 bits. Over the keys, two lists of one length have the same value
// about once in 2^64; of lists of several lengths, an early number must tell the length.
class KeyedHash {
 public:
  __extension__ using Wide = unsigned __int128;

  // Of lists of at most `words` numbers. Who has the same seed has the same hash.
  KeyedHash(std::uint64_t seed, std::size_t words) {
    for (std::size_t i = 0; i <= words; ++i) keys_.push_back(Wide{next_number(seed)} << 64 | next_number(seed));
  }

  // The hash of one list: its numbers are added in their order.
  class Sum {
   public:
    explicit Sum(const KeyedHash& hash) : key_(hash.keys_.data()), sum_(*key_) {}
    void add(std::uint64_t number) { sum_ += *++key_ * number; }
    std::uint64_t value() const { return static_cast<std::uint64_t>(sum_ >> 64); }

   private:
    const Wide* key_;
    Wide sum_;
  };

 private:
  std::vector<Wide> keys_;
};

}  // namespace shim
