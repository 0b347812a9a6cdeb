// Collectives on tensors in shared memory: read where they are, with the bits that the rings give.
#include <cstring>

#include "tests/floats.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

constexpr std::size_t some = 50'000;  // elements: more than a piece, and no multiple of a line

// What a collective leaves in the output, which has `received` elements, of an input of `sent` ones.
using Make = std::function<std::unique_ptr<Operation>(Rank&, Floats& output, Floats& input)>;
std::vector<float> result_of(Rank& me, bool is_shared, std::size_t sent, std::size_t received, const Make& make) {
  Floats input(sent, is_shared, me.rank(), 3);
  Floats output(received, is_shared, 100 + me.rank());
  const std::vector<float> before = input.values();
  me.run(make(me, output, input));
  CHECK_EQUAL(was_direct(me), is_shared);
  CHECK(input.values() == before);
  return output.values();
}

void check_same_bits(std::size_t sent, std::size_t received, bool times_ranks_sent, bool times_ranks_received,
                     const Make& make) {
  for (const int size : {2, 3, 4, 7})
    on_ranks(size, [&](Rank& me) {
      const auto n = static_cast<std::size_t>(me.size());
      const std::size_t in = times_ranks_sent ? n * sent : sent;
      const std::size_t out = times_ranks_received ? n * received : received;
      const std::vector<float> direct = result_of(me, true, in, out, make);
      const std::vector<float> through_rings = result_of(me, false, in, out, make);
      CHECK(std::memcmp(direct.data(), through_rings.data(), out * sizeof(float)) == 0);
    });
}

}  // namespace

SHIM_TEST(gathering_and_scattering_give_the_bits_of_the_rings) {
  check_same_bits(some, some, false, true, [](Rank& me, Floats& output, Floats& input) {
    return make_all_gather(me.seat(), output.as("output"), input.as("input"), no_splits("output_splits"));
  });
  check_same_bits(some, some, false, true, [](Rank& me, Floats& output, Floats& input) {
    return make_gather(me.seat(), output.as("output"), input.as("input"), no_splits("output_splits"), me.size() - 1);
  });
  check_same_bits(some, some, true, false, [](Rank& me, Floats& output, Floats& input) {
    return make_scatter(me.seat(), output.as("output"), input.as("input"), no_splits("input_splits"), 1);
  });
  check_same_bits(some, some, true, true, [](Rank& me, Floats& output, Floats& input) {
    return make_all_to_all(me.seat(), output.as("output"), input.as("input"), no_splits("output_splits"),
                           no_splits("input_splits"));
  });
}

SHIM_TEST(reductions_give_the_bits_of_the_rings) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::premul_sum}) {
    const auto how = [op](Rank& me) { return Reduction{op, 0.1 * (me.rank() + 1)}; };
    check_same_bits(some, some, false, false, [&](Rank& me, Floats& output, Floats& input) {
      return make_all_reduce(me.seat(), output.as("output"), input.as("input"), how(me));
    });
    check_same_bits(some, some, false, false, [&](Rank& me, Floats& output, Floats& input) {
      return make_reduce(me.seat(), output.as("output"), input.as("input"), how(me), 1);
    });
    check_same_bits(some, some, true, false, [&](Rank& me, Floats& output, Floats& input) {
      return make_reduce_scatter(me.seat(), output.as("output"), input.as("input"), no_splits("input_splits"), how(me));
    });
  }
}

SHIM_TEST(unequal_and_empty_parts_of_lists) {
  for (const int size : {2, 3, 4, 7})
    on_ranks(size, [](Rank& me) {
      std::vector<std::size_t> sends, receives;
      std::size_t sent = 0, received = 0;
      for (int peer = 0; peer < me.size(); ++peer) {
        sends.push_back(static_cast<std::size_t>((me.rank() + 2 * peer) % 3) * 20'000);
        receives.push_back(static_cast<std::size_t>((peer + 2 * me.rank()) % 3) * 20'000);
        sent += sends.back();
        received += receives.back();
      }
      std::vector<std::vector<float>> results;
      for (const bool is_shared : {true, false}) {
        Floats input(sent, is_shared, me.rank());
        Floats output(received, is_shared, 100 + me.rank());
        me.run(make_all_to_all(me.seat(), output.as("output", receives), input.as("input", sends),
                               no_splits("output_splits"), no_splits("input_splits")));
        CHECK_EQUAL(was_direct(me), is_shared);
        results.push_back(output.values());
      }
      CHECK(results[0] == results[1]);
    });
}

SHIM_TEST(broadcast_and_all_reduce_work_in_place) {
  for (const int size : {2, 3, 4, 7})
    on_ranks(size, [](Rank& me) {
      for (int root = 0; root < me.size(); ++root) {
        Floats tensor(some, true, me.rank());
        me.run(make_broadcast(me.seat(), tensor.as("tensor"), root));
        CHECK(was_direct(me));
        CHECK(tensor.values() == Floats(some, false, root).values());
      }
      Floats shared(some, true, me.rank());
      Floats plain(some, false, me.rank());
      me.run(make_all_reduce(me.seat(), shared.as("output"), shared.as("input"), sum));
      CHECK(was_direct(me));
      me.run(make_all_reduce(me.seat(), plain.as("output"), plain.as("input"), sum));
      CHECK(shared.values() == plain.values());
    });
}

SHIM_TEST(an_all_gather_is_right_elsewhere_where_an_output_overlaps_an_input_in_place) {
  constexpr std::size_t large = 1 << 19;  // more than the rings hold
  on_ranks(3, [](Rank& me) {
    for (const bool is_shared : {true, false}) {
      Floats tensor(4 * large, is_shared, me.rank());
      TensorArgument outputs{"output", std::nullopt, {}, true};
      for (const std::size_t start : {std::size_t{0}, me.rank() == 0 ? large / 2 : large, 2 * large})
        outputs.list.push_back(tensor.as("output", start, large).tensor());
      const std::size_t own = me.rank() == 0 ? 0 : 3 * large;
      me.run(make_all_gather(me.seat(), outputs, tensor.as("input", own, large), no_splits("output_splits")));
      const std::vector<float> right = Floats(4 * large, false, 0).values();
      CHECK(me.rank() == 0 || std::equal(right.begin(), right.begin() + large, tensor.values().begin()));
    }
  });
}

SHIM_TEST(tensors_that_overlap_are_right_too) {
  on_ranks(3, [](Rank& me) {
    std::vector<std::vector<float>> results;
    for (const bool is_shared : {true, false}) {
      Floats tensor(3 * some, is_shared, me.rank());
      me.run(make_all_reduce(me.seat(), tensor.as("output", 7, some), tensor.as("input", 0, some), sum));
      me.run(make_all_to_all(me.seat(), tensor.as("output"), tensor.as("input"), no_splits("output_splits"),
                             no_splits("input_splits")));
      const std::size_t own = static_cast<std::size_t>(me.rank()) * some;
      me.run(make_reduce_scatter(me.seat(), tensor.as("output", own, some), tensor.as("input"),
                                 no_splits("input_splits"), sum));
      me.run(
          make_all_gather(me.seat(), tensor.as("output"), tensor.as("input", own, some), no_splits("output_splits")));
      CHECK_EQUAL(was_direct(me), is_shared);
      results.push_back(tensor.values());
    }
    CHECK(results[0] == results[1]);
  });
}
