// Tensors of random floats, in shared memory or in the process's own.
#pragma once

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lending/shared_allocation.hpp"
#include "tests/ranks.hpp"

namespace shim::tests {

// `seed` says which numbers; they begin `offset` elements behind the beginning of their memory.
class Floats {
 public:
  Floats(std::size_t count, bool is_shared, int seed, std::size_t offset = 0) : count_(count), offset_(offset) {
    const std::size_t bytes = (count + offset) * sizeof(float);
    if (is_shared)
      shared_ = std::make_unique<SharedAllocation>(std::max<std::size_t>(bytes, 1));
    else
      private_.resize(count + offset);
    std::mt19937 random(static_cast<unsigned>(seed));
    std::uniform_real_distribution<float> numbers(-1, 1);
    for (std::size_t i = 0; i < count; ++i) data()[i] = numbers(random);
  }

  float* data() { return (shared_ ? reinterpret_cast<float*>(shared_->data()) : private_.data()) + offset_; }
  std::vector<float> values() { return {data(), data() + count_}; }
  TensorArgument as(std::string_view role, std::size_t start = 0, std::size_t count = ~std::size_t{0}) {
    return {role, view(start, count), {}, false};
  }
  // As a list of parts.
  TensorArgument as(std::string_view role, const std::vector<std::size_t>& counts) {
    TensorArgument argument{role, std::nullopt, {}, true};
    std::size_t start = 0;
    for (const std::size_t count : counts) {
      argument.list.push_back(view(start, count));
      start += count;
    }
    return argument;
  }

 private:
  TensorView view(std::size_t start, std::size_t count) {
    TensorView view;
    view.data = reinterpret_cast<std::byte*>(data() + start);
    view.dtype = Dtype::float32;
    view.dimensions = 1;
    view.shape[0] = static_cast<std::int64_t>(std::min(count, count_ - start));
    view.strides[0] = 1;
    return view;
  }

  std::size_t count_;
  std::size_t offset_;
  std::unique_ptr<SharedAllocation> shared_;
  std::vector<float> private_;
};

// Of `count` elements of each rank, which are those that its number is the seed of.
inline void check_gathered(Rank& me, Floats& output, std::size_t count) {
  const std::vector<float> all = output.values();
  for (int rank = 0; rank < me.size(); ++rank) {
    Floats theirs(count, false, rank);
    CHECK(std::memcmp(all.data() + static_cast<std::size_t>(rank) * count, theirs.data(), count * sizeof(float)) == 0);
  }
}

// How many memory files of ours this process has mapped.
inline std::size_t mapped_files() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:shim") != std::string::npos ? 1 : 0;
  return count;
}

// Whether the last operation read the ranks' tensors where they are.
inline bool was_direct(Rank& me) { return me.group().direct(me.rank()).finished.load() == me.group().sequence; }

}  // namespace shim::tests
