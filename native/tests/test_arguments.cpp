// What one rank can find wrong with its own arguments.
#include "ranks.hpp"

using namespace shim;
using namespace shim::tests;

SHIM_TEST(split_sizes_whose_sum_overflows_are_refused) {
  std::vector<std::int64_t> data(4);
  const SplitArgument wild{"output_splits", {{INT64_MAX, INT64_MAX, 6}}};  // the sum is 4 in 64 bits
  try {
    make_all_gather(Seat{0, 3}, one("output", data), one("input", data), wild);
  } catch (const Failure& failure) {
    CHECK(failure.kind == FailureKind::argument);
    return;
  }
  throw std::runtime_error("not refused");
}
