// Collectives in which two ranks read each other's tensors through the kernel.
#include <algorithm>

#include "tests/cross_memory.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

// In the last operation, both ways.
bool swapped_across(Rank& me) {
  const std::uint64_t last = me.group().sequence;
  return me.group().cross(0).accepted == last && me.group().cross(1).accepted == last;
}

const SplitArgument equal = no_splits("splits");

// What an all_gather and an all_to_all of `bytes` bytes for each rank leave here; of which `input` is what the others
// get.
void check_swaps(Rank& me, const TensorArgument& input, std::size_t bytes, bool are_across) {
  const auto seed = [&](int rank) { return static_cast<unsigned>(10 + rank); };
  Bytes gathered(2 * bytes);
  me.run(make_all_gather(me.seat(), one("output", gathered), input, equal));
  CHECK_EQUAL(swapped_across(me), are_across);
  for (int rank = 0; rank < 2; ++rank) {
    const auto part = gathered.begin() + static_cast<std::ptrdiff_t>(bytes) * rank;
    CHECK(std::equal(part, part + static_cast<std::ptrdiff_t>(bytes), message(bytes, seed(rank)).begin()));
  }
  Bytes exchanged(bytes);
  if (bytes % 2 != 0) return;
  me.run(make_all_to_all(me.seat(), one("output", exchanged), input, equal, equal));
  CHECK_EQUAL(swapped_across(me), are_across);
  const auto half = static_cast<std::ptrdiff_t>(bytes / 2);
  for (int rank = 0; rank < 2; ++rank) {
    const Bytes theirs = message(bytes, seed(rank));
    CHECK(std::equal(exchanged.begin() + half * rank, exchanged.begin() + half * (rank + 1),
                     theirs.begin() + half * me.rank()));
  }
}

}  // namespace

SHIM_TEST(what_two_ranks_have_for_each_other_arrives_whatever_its_size) {
  on_ranks(
      2,
      [](Rank& me) {
        for (const std::size_t bytes : {std::size_t{100}, std::size_t{1001}, chunk, 5 * chunk + 78}) {
          Bytes input = message(bytes, static_cast<unsigned>(10 + me.rank()));
          check_swaps(me, one("input", input), bytes, true);
        }
      },
      60, crossing_from(1));
}

SHIM_TEST(two_ranks_whose_tensors_have_gaps_or_are_their_own_outputs_swap_across_as_well) {
  on_ranks(
      2,
      [](Rank& me) {
        const std::size_t bytes = 3 * chunk;
        const Bytes right = message(bytes, static_cast<unsigned>(10 + me.rank()));
        Bytes data(2 * bytes);
        for (std::size_t i = 0; i < bytes; ++i) data[2 * i] = right[i];
        TensorArgument input = one("input", data, {static_cast<std::int64_t>(bytes)});
        input.single->strides[0] = 2;
        check_swaps(me, input, bytes, true);
        Bytes inout = right;
        me.run(make_all_to_all(me.seat(), one("output", inout), one("input", inout), equal, equal));
        CHECK(swapped_across(me));
        const Bytes theirs = message(bytes, static_cast<unsigned>(10 + 1 - me.rank()));
        const std::size_t own = static_cast<std::size_t>(me.rank()) * bytes / 2;
        const std::size_t other = bytes / 2 - own;
        CHECK(std::equal(&inout[own], &inout[own] + bytes / 2, &right[own]));
        CHECK(std::equal(&inout[other], &inout[other] + bytes / 2, &theirs[own]));
      },
      60, crossing_from(1));
}

SHIM_TEST(parts_that_differ_much_go_through_the_rings) {
  on_ranks(
      2,
      [](Rank& me) {
        const std::vector<std::size_t> bytes = {2 * chunk, 3 * chunk};
        Bytes input = message(bytes[static_cast<std::size_t>(me.rank())], static_cast<unsigned>(me.rank()));
        std::vector<Bytes> parts = {Bytes(bytes[0]), Bytes(bytes[1])};
        me.run(make_all_gather(me.seat(), list("outputs", parts), one("input", input), equal));
        CHECK(parts[0] == message(bytes[0], 0) && parts[1] == message(bytes[1], 1));
        CHECK(!went_across(me));
      },
      60, crossing_from(1));
}

SHIM_TEST(what_one_of_two_ranks_cannot_read_goes_through_the_rings) {
  on_ranks(
      2,
      [](Rank& me) {
        const std::size_t bytes = 3 * chunk;
        Bytes input = message(bytes, static_cast<unsigned>(10 + me.rank()));
        const Secret secret(bytes);
        TensorArgument argument = one("input", input);
        if (me.rank() == 0 && secret.exists()) {
          std::copy(data_of(input), data_of(input) + bytes, secret.data());
          argument.single->data = secret.data();
        }
        Bytes gathered(2 * bytes);
        me.run(make_all_gather(me.seat(), one("output", gathered), argument, equal));
        const Bytes theirs = message(bytes, static_cast<unsigned>(10 + 1 - me.rank()));
        CHECK(std::equal(theirs.begin(), theirs.end(),
                         gathered.begin() + static_cast<std::ptrdiff_t>(bytes) * (1 - me.rank())));
        CHECK_EQUAL(swapped_across(me), !secret.exists());
        if (me.rank() == 0) ++me.group().note(0).identity;
        check_swaps(me, one("input", input), bytes, false);
      },
      60, crossing_from(1));
}

SHIM_TEST(a_hole_in_what_one_of_two_ranks_has_for_the_other_fails_the_group) {
  on_ranks(
      2,
      [](Rank& me) {
        std::vector<Bytes> parts = {Bytes(4 * chunk), Bytes(4 * chunk)};
        TensorArgument input = one("input", parts[static_cast<std::size_t>(me.rank())]);
        TensorArgument outputs = list("outputs", parts);
        const Holed memory(4 * chunk, chunk, 3 * chunk);
        // Its own part too, where nothing is copied: a processor that read the hole would end there.
        if (me.rank() == 0) input.single->data = outputs.list[0].data = memory.data();
        const FailureKind kind = me.failure_of(make_all_gather(me.seat(), outputs, input, equal));
        CHECK(kind == (me.rank() == 0 ? FailureKind::peer_lost : FailureKind::engine));
      },
      60, crossing_from(1));
}
