// Fingerprints against the comparison of the calls themselves: calls that differ have different ones.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/ranks.hpp"

using namespace shim;

namespace {

constexpr int ranks = 8;

KeyedHash hash_drawn(std::uint64_t seed) { return {seed, 3 + max_dimensions}; }

Call all_reduce_of(const std::vector<std::int64_t>& shape) {
  Call call(OperationKind::all_reduce, Dtype::float32);
  std::uint64_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::uint64_t>(extent);
  call.descriptor.sends = call.descriptor.receives = count;
  call.descriptor.dimensions = static_cast<std::uint8_t>(shape.size());
  std::copy(shape.begin(), shape.end(), call.descriptor.shape);
  return call;
}

// Calls as programs make them, of which any two have much in common.
class Calls {
 public:
  explicit Calls(std::uint64_t seed) : random_(seed) {}

  Call draw() {
    Call call(OperationKind(1 + below(9)), Dtype(1 + below(12)));
    call.descriptor.op = ReduceOp(below(4));
    call.descriptor.root = static_cast<std::int16_t>(below(4)) - 1;
    call.descriptor.dimensions = static_cast<std::uint8_t>(below(4));
    for (int d = 0; d < call.descriptor.dimensions; ++d) call.descriptor.shape[d] = extent();
    call.descriptor.sends = static_cast<std::uint64_t>(extent());
    call.descriptor.receives = below(2) == 0 ? call.descriptor.sends : static_cast<std::uint64_t>(extent());
    if (call.descriptor.kind == OperationKind::all_gather && below(2) == 0) {
      call.descriptor.receives = CallDescriptor::in_table;
      for (int rank = 0; rank < ranks; ++rank) call.receives.push_back(below(2) * below(3));
    }
    return call;
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::int64_t extent() { return static_cast<std::int64_t>(below(std::uint64_t{1} << (1 + below(20)))); }

  std::mt19937_64 random_;
};

bool are_equal(const Call& a, const Call& b) {
  const CallDescriptor& x = a.descriptor;
  const CallDescriptor& y = b.descriptor;
  if (x.kind != y.kind || x.dtype != y.dtype || x.op != y.op || x.root != y.root || x.device != y.device) return false;
  if (a.has_common_table() != b.has_common_table()) return false;
  if (a.has_common_table()) return a.receives == b.receives;
  return x.sends == y.sends && x.receives == y.receives && x.dimensions == y.dimensions &&
         std::equal(x.shape, x.shape + x.dimensions, y.shape);
}

// SHIM_PAIRS, or a million: a hundred million take a minute.
std::size_t pairs_to_draw() {
  const char* const given = std::getenv("SHIM_PAIRS");
  return given == nullptr ? 1'000'000 : std::stoull(given);
}

}  // namespace

SHIM_TEST(pairs_of_different_calls_have_different_fingerprints) {
  constexpr std::size_t pairs_of_one_seed = 10'000;
  Calls calls(7);
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; compared < pairs_to_draw(); ++seed) {
    const KeyedHash hash = hash_drawn(seed);
    Call before = calls.draw();
    for (std::size_t i = 0; i < pairs_of_one_seed; ++i, ++compared) {
      const Call call = calls.draw();
      CHECK((fingerprint_of(before, hash) == fingerprint_of(call, hash)) == are_equal(before, call));
      before = call;
    }
  }
}

// That is half a trillion pairs.
SHIM_TEST(no_two_sizes_below_a_million_have_one_fingerprint) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    const KeyedHash hash = hash_drawn(seed);
    std::vector<std::uint64_t> all;
    for (std::int64_t size = 0; size < 1'000'000; ++size) all.push_back(fingerprint_of(all_reduce_of({size}), hash));
    std::ranges::sort(all);
    CHECK(std::ranges::adjacent_find(all) == all.end());
  }
}

SHIM_TEST(counts_of_all_ranks_are_no_shape) {
  Call plain(OperationKind::all_gather, Dtype::float32);
  plain.descriptor.sends = plain.descriptor.receives = 1;
  Call uneven(OperationKind::all_gather, Dtype::float32);
  uneven.descriptor.sends = 1;
  uneven.descriptor.receives = CallDescriptor::in_table;
  uneven.receives = {1, 1, 0};
  CHECK(fingerprint_of(plain, hash_drawn(1)) != fingerprint_of(uneven, hash_drawn(1)));
}

SHIM_TEST(the_seed_changes_the_fingerprint) {
  const Call call = all_reduce_of({332, 3});
  CHECK(fingerprint_of(call, hash_drawn(1)) != fingerprint_of(call, hash_drawn(2)));
  CHECK(fingerprint_of(call, hash_drawn(1)) == fingerprint_of(call, hash_drawn(1)));
}
