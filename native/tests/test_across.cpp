// Broadcasts that two ranks copy from tensor to tensor.
#include <sys/mman.h>

#include "cross_memory.hpp"

using namespace shim;
using namespace shim::tests;

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
      },
      60, crossing_from(1));
}

SHIM_TEST(a_broadcast_of_memory_that_cannot_be_read_fails_the_group) {
  on_ranks(
      2,
      [](Rank& me) {
        constexpr std::size_t bytes = 4 * chunk;
        Bytes data(bytes);
        TensorArgument tensor = one("tensor", data);
        void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ::mprotect(static_cast<std::byte*>(memory) + bytes / 2, bytes / 2, PROT_NONE);
        if (me.rank() == 0) tensor.single->data = static_cast<std::byte*>(memory);
        const FailureKind kind = me.failure_of(make_broadcast(me.seat(), tensor, 0));
        CHECK(kind == (me.rank() == 0 ? FailureKind::peer_lost : FailureKind::engine));
        ::munmap(memory, bytes);
      },
      60, crossing_from(1));
}
