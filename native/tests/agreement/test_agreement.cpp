// Ranks that disagree: everyone is told, nothing is written, and the group goes on.
#include <chrono>
#include <thread>

#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

// Has all ranks make `call`, in which one rank differs, checks the verdict everywhere, and that a good call follows.
void check_mismatch(const char* what, std::size_t count,
                    const std::function<std::unique_ptr<Operation>(Rank&, std::vector<std::int64_t>&, bool)>& call) {
  for (const int size : {2, 3, 4})
    for (int odd = 0; odd < size; ++odd)
      on_ranks(size, [&](Rank& me) {
        std::vector<std::int64_t> data(count, 5 + me.rank());
        const auto before = data;
        try {
          me.run(call(me, data, me.rank() == odd));
          throw std::runtime_error("no mismatch on rank " + std::to_string(me.rank()));
        } catch (const Failure& failure) {
          CHECK(failure.kind == FailureKind::mismatch);
          CHECK(std::string(failure.what()).find(what) != std::string::npos);
          for (int rank = 0; rank < size; ++rank)
            CHECK(std::string(failure.what()).find("\n  rank " + std::to_string(rank) + ": ") != std::string::npos);
        }
        CHECK(data == before);
        std::vector<std::int64_t> after = {me.rank() + 1};
        me.run(make_all_reduce(me.seat(), one("output", after), one("input", after), sum));
        CHECK_EQUAL(after[0], static_cast<std::int64_t>(size) * (size + 1) / 2);
      });
}

}  // namespace

SHIM_TEST(operations_differ) {
  for (const std::size_t count : {1, 40'000})
    check_mismatch("the operation", count, [](Rank& me, std::vector<std::int64_t>& data, bool odd) {
      if (odd) return make_broadcast(me.seat(), one("tensor", data), 0);
      return make_all_reduce(me.seat(), one("output", data), one("input", data), sum);
    });
}

SHIM_TEST(slots_filled_before_a_disagreement_harm_nothing) {
  for (const int size : {2, 3})
    on_ranks(size, [](Rank& me) {
      for (int round = 0; round < 5; ++round) {
        std::vector<std::int64_t> small(1000 + static_cast<std::size_t>(me.rank() == 0), -1);
        CHECK(me.failure_of(make_all_reduce(me.seat(), one("output", small), one("input", small), sum)) ==
              FailureKind::mismatch);
        for (const std::size_t count : {100'000, 1000}) {  // filled after the ranks agree, and before
          std::vector<std::int64_t> data(count, me.rank() + round);
          me.run(make_broadcast(me.seat(), one("tensor", data), me.size() - 1));
          CHECK(data == std::vector<std::int64_t>(count, me.size() - 1 + round));
        }
      }
    });
}

SHIM_TEST(dtypes_differ) {
  check_mismatch("the dtype", 4, [](Rank& me, std::vector<std::int64_t>& data, bool odd) {
    TensorArgument tensor = one("tensor", data);
    if (odd) tensor.single->dtype = Dtype::uint64;
    return make_all_reduce(me.seat(), tensor, tensor, sum);
  });
}

SHIM_TEST(shapes_differ) {
  for (const std::size_t count : {4, 40'000})
    check_mismatch("the shape", count, [](Rank& me, std::vector<std::int64_t>& data, bool odd) {
      TensorArgument tensor = one("tensor", data);
      if (odd) tensor.single->shape[0] -= 1;
      return make_all_reduce(me.seat(), tensor, tensor, sum);
    });
}

SHIM_TEST(reduce_ops_differ) {
  check_mismatch("the reduce op", 4, [](Rank& me, std::vector<std::int64_t>& data, bool odd) {
    return make_all_reduce(me.seat(), one("output", data), one("input", data),
                           {odd ? ReduceOp::max : ReduceOp::sum, 1.0});
  });
}

SHIM_TEST(roots_differ) {
  check_mismatch("the root", 4, [](Rank& me, std::vector<std::int64_t>& data, bool odd) {
    return make_broadcast(me.seat(), one("tensor", data), odd ? 1 : 0);
  });
}

SHIM_TEST(split_sizes_differ) {
  check_mismatch("the sizes of the parts", 13, [](Rank& me, std::vector<std::int64_t>& data, bool odd) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(me.size()), 12 / me.size());
    if (odd) rows[static_cast<std::size_t>((me.rank() + 1) % me.size())] += 1;  // what the next rank does not expect
    return make_all_to_all(me.seat(), one("output", data, {12}), one("input", data, {odd ? 13 : 12}),
                           no_splits("output_splits"), {"input_splits", rows});
  });
}

SHIM_TEST(what_is_expected_of_another_rank_differs) {
  for (const std::int64_t times : {1, 10'000})
    check_mismatch("the sizes of the parts", static_cast<std::size_t>(times) * 11,
                   [times](Rank& me, std::vector<std::int64_t>& data, bool odd) {
                     std::vector<std::int64_t> rows;
                     for (int rank = 0; rank < me.size(); ++rank) rows.push_back(times * (rank + 1));
                     std::int64_t total = times * me.size() * (me.size() + 1) / 2;
                     if (odd) rows[static_cast<std::size_t>((me.rank() + 1) % me.size())] += 1;
                     if (odd) ++total;
                     return make_all_gather(me.seat(), one("output", data, {total}),
                                            one("input", data, {times * (me.rank() + 1)}), {"output_splits", rows});
                   });
}

SHIM_TEST(gathered_parts_may_have_any_shape) {
  on_ranks(3, [](Rank& me) {
    const std::vector<std::vector<std::int64_t>> shapes = {{2, 2}, {1}, {3, 1, 1}};
    std::vector<std::int64_t> mine(4, me.rank()), all(8, -1);
    me.run(make_all_gather(me.seat(), one("output", all),
                           one("input", mine, shapes[static_cast<std::size_t>(me.rank())]),
                           {"output_splits", std::vector<std::int64_t>{4, 1, 3}}));
    CHECK(all == std::vector<std::int64_t>({0, 0, 0, 0, 1, 2, 2, 2}));
  });
}

SHIM_TEST(even_splits_may_be_given_or_not) {
  on_ranks(3, [](Rank& me) {
    std::vector<std::int64_t> data = {me.rank(), me.rank() + 10, me.rank() + 20};
    const SplitArgument given{"input_splits", std::vector<std::int64_t>{1, 1, 1}};
    me.run(make_all_to_all(me.seat(), one("output", data), one("input", data), no_splits("output_splits"),
                           me.rank() == 1 ? given : no_splits("input_splits")));
    for (int from = 0; from < 3; ++from) CHECK_EQUAL(data[static_cast<std::size_t>(from)], from + 10 * me.rank());
  });
}

std::string mismatch_of(Rank& me, std::unique_ptr<Operation> operation) {
  try {
    me.run(std::move(operation));
  } catch (const Failure& failure) {
    if (failure.kind == FailureKind::mismatch) return failure.what();
  }
  throw std::runtime_error("no mismatch");
}

SHIM_TEST(a_barrier_before_something_meets_no_other_call) {
  on_ranks(3, [](Rank& me) {
    std::vector<std::int64_t> data = {me.rank()};
    const std::string longest(200, 'x');
    for (const std::string& what : {std::string("2 coalesced calls"), std::string("1"), longest}) {
      me.run(make_barrier(me.seat(), what));
      const std::string plain = mismatch_of(me, make_barrier(me.seat(), me.rank() == 1 ? "" : what));
      CHECK(plain.find("disagree on the operation") != std::string::npos);
      CHECK(plain.find("rank 0: " + (what == longest ? what.substr(0, 125) + "..." : what)) != std::string::npos);
      CHECK(plain.find("rank 1: barrier()") != std::string::npos);
      CHECK(plain.find(", barrier on rank 1") != std::string::npos);
      const std::string other = mismatch_of(me, make_barrier(me.seat(), me.rank() == 2 ? "a new group" : what));
      CHECK(other.find("rank 2: a new group") != std::string::npos);
      const std::string sum_there =
          mismatch_of(me, me.rank() == 1 ? make_all_reduce(me.seat(), one("output", data), one("input", data), sum)
                                         : make_barrier(me.seat(), what));
      CHECK(sum_there.find("disagree on the operation") != std::string::npos);
    }
    me.run(make_all_reduce(me.seat(), one("output", data), one("input", data), sum));
    CHECK_EQUAL(data[0], 3);
  });
}

SHIM_TEST(a_refused_call_tells_the_others) {
  for (const int refusals : {1, 2, 5})
    on_ranks(3, [&](Rank& me) {
      std::vector<std::int64_t> data = {me.rank()};
      for (int i = 0; i < refusals; ++i) {
        if (me.rank() == 1) {
          me.progress().refuse({"its argument was wrong\nand a hint", ""});
          continue;
        }
        try {
          me.run(make_all_reduce(me.seat(), one("output", data), one("input", data), sum));
          throw std::runtime_error("no mismatch");
        } catch (const Failure& failure) {
          CHECK(std::string(failure.what()).find("rank 1: refused: its argument was wrong") != std::string::npos);
        }
      }
      me.run(make_all_reduce(me.seat(), one("output", data), one("input", data), sum));
      CHECK_EQUAL(data[0], 3);
    });
}

SHIM_TEST(refused_calls_are_told_before_a_rank_leaves) {
  on_ranks(3, [](Rank& me) {
    if (me.rank() == 1) {
      for (int i = 0; i < 3; ++i) me.progress().refuse({"its argument was wrong", ""});
      me.progress().stop();
      return;
    }
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      CHECK(me.failure_of(make_barrier(me.seat())) == FailureKind::mismatch);
    }
    CHECK(me.failure_of(make_barrier(me.seat())) == FailureKind::peer_lost);
  });
}

SHIM_TEST(all_may_refuse) {
  on_ranks(4, [](Rank& me) {
    for (int i = 0; i < 3; ++i) me.progress().refuse({"wrong on every rank", ""});
    std::vector<std::int64_t> data = {1};
    me.run(make_all_reduce(me.seat(), one("output", data), one("input", data), sum));
    CHECK_EQUAL(data[0], 4);
  });
}
