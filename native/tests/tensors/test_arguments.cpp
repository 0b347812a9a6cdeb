// What one rank can find wrong with its own arguments.
#include "tests/ranks.hpp"

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

namespace {

// Why parts of shape `part`, of three ranks, are not what a tensor of shape `whole` holds; nothing where they are.
std::string refusal_of(std::vector<std::int64_t> whole, std::vector<std::int64_t> part) {
  std::vector<float> all(64);
  std::vector<float> own(64);
  try {
    check_whole(one("output", all, std::move(whole)), one("input", own, std::move(part)), 3);
  } catch (const Failure& failure) {
    CHECK(failure.kind == FailureKind::argument);
    return failure.what();
  }
  return "";
}

TensorArgument scalar(std::string_view role, std::vector<float>& data) {
  TensorArgument argument = one(role, data, {1});
  argument.single->dimensions = 0;
  return argument;
}

}  // namespace

SHIM_TEST(a_whole_tensor_is_its_parts_stacked_or_one_after_the_other) {
  CHECK_EQUAL(refusal_of({3, 2, 4}, {2, 4}), "");
  CHECK_EQUAL(refusal_of({6, 4}, {2, 4}), "");
  CHECK_EQUAL(refusal_of({3, 5}, {5}), "");
  CHECK_EQUAL(refusal_of({17}, {5}), "");  // the numbers of elements are compared elsewhere
  CHECK_EQUAL(refusal_of({2, 12}, {2, 4}),
              "{output} must have shape (6, 4) or (3, 2, 4) for {input} of shape (2, 4), got (2, 12)");
  CHECK_EQUAL(refusal_of({24}, {2, 4}),
              "{output} must have shape (6, 4) or (3, 2, 4) for {input} of shape (2, 4), got (24,)");
  CHECK_EQUAL(refusal_of({5, 3}, {5}),
              "{output} must have shape (15,) or (3, 5) for {input} of shape (5,), got (5, 3)");
}

SHIM_TEST(rows_of_all_ranks_that_overflow_are_no_shape) {
  std::vector<float> data(1);
  constexpr std::int64_t many = std::int64_t{1} << 62;
  TensorArgument part = one("input", data, {many, 0});
  try {
    check_whole(one("output", data, {-many, 0}), part, 3);  // what three times as many are in 64 bits
    throw std::runtime_error("not refused");
  } catch (const Failure& failure) {
    CHECK(std::string(failure.what()).find("{output} must have shape (3, " + std::to_string(many) + ", 0) for") == 0);
  }
}

SHIM_TEST(a_whole_tensor_of_scalars_is_a_vector) {
  std::vector<float> all(9);
  std::vector<float> own(1);
  check_whole(one("output", all, {3}), scalar("input", own), 3);
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{9}, std::vector<std::int64_t>{3, 1}}) try {
      check_whole(one("output", all, shape), scalar("input", own), 3);
      throw std::runtime_error("not refused");
    } catch (const Failure& failure) {
      CHECK(std::string(failure.what()).find("{output} must have shape (3,) for {input} of shape (), got (") == 0);
    }
}
