// Broadcasts that two ranks copy from tensor to tensor.
#include <algorithm>

#include "cross_memory.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

// The last operation.
bool went_across(Rank& me) {
  const std::uint64_t last = me.group().sequence;
  return me.group().cross(0).accepted == last || me.group().cross(1).accepted == last;
}

}  // namespace

SHIM_TEST(broadcasts_between_two_ranks_arrive_whatever_the_root_and_the_size) {
  on_ranks(
      2,
      [](Rank& me) {
        for (const std::size_t bytes : {std::size_t{1000}, chunk / 2 + 1, chunk, 5 * chunk + 77})
          for (const int root : {0, 1}) {
            const Bytes right = message(bytes, static_cast<unsigned>(root));
            Bytes data = me.rank() == root ? right : Bytes(bytes);
            if (root == 0)
              me.run(make_broadcast(me.seat(), one("tensor", data), root));
            else
              me.start(make_broadcast(me.seat(), one("tensor", data), root))->wait(-1);
            CHECK(data == right);
            CHECK_EQUAL(went_across(me), bytes > chunk / 2);
          }
      },
      60, crossing_from(1));
}

SHIM_TEST(a_broadcast_into_a_tensor_with_gaps_goes_through_the_rings) {
  on_ranks(
      2,
      [](Rank& me) {
        const Bytes right = message(3 * chunk, 1);
        Bytes data = me.rank() == 0 ? right : Bytes(2 * right.size());
        TensorArgument tensor = one("tensor", data, {static_cast<std::int64_t>(right.size())});
        if (me.rank() == 1) tensor.single->strides[0] = 2;
        me.run(make_broadcast(me.seat(), tensor, 0));
        for (std::size_t i = 0; me.rank() == 1 && i < right.size(); ++i)
          CHECK(data[2 * i] == right[i] && data[2 * i + 1] == 0);
        CHECK(!went_across(me));
      },
      60, crossing_from(1));
}

SHIM_TEST(a_broadcast_of_a_tensor_with_a_hole_fails_the_group) {
  on_ranks(
      2,
      [](Rank& me) {
        Bytes data(4 * chunk);
        TensorArgument tensor = one("tensor", data);
        const Holed memory(data.size(), chunk, 3 * chunk);
        if (me.rank() == 0) tensor.single->data = memory.data();
        const FailureKind kind = me.failure_of(make_broadcast(me.seat(), tensor, 0));
        CHECK(kind == (me.rank() == 0 ? FailureKind::peer_lost : FailureKind::engine));
      },
      60, crossing_from(1));
}

SHIM_TEST(a_broadcast_of_memory_that_the_kernel_does_not_read_goes_through_the_rings) {
  on_ranks(
      2,
      [](Rank& me) {
        const Bytes right = message(3 * chunk, 4);
        Bytes data = me.rank() == 0 ? right : Bytes(right.size());
        const Secret secret(right.size());
        TensorArgument tensor = one("tensor", data);
        if (me.rank() == 0 && secret.exists()) {
          std::copy(data_of(data), data_of(data) + data.size(), secret.data());
          tensor.single->data = secret.data();
        }
        me.run(make_broadcast(me.seat(), tensor, 0));
        CHECK(data == right);
        CHECK_EQUAL(went_across(me), !secret.exists());
      },
      60, crossing_from(1));
}

SHIM_TEST(a_broadcast_to_a_rank_that_cannot_tell_which_process_this_is_goes_through_the_rings) {
  on_ranks(
      2,
      [](Rank& me) {
        if (me.rank() == 0) ++me.group().note(0).identity;
        const Bytes right = message(3 * chunk, 4);
        Bytes data = me.rank() == 0 ? right : Bytes(right.size());
        me.run(make_broadcast(me.seat(), one("tensor", data), 0));
        CHECK(data == right);
        CHECK(!went_across(me));
      },
      60, crossing_from(1));
}
