// Lending shared memory to the other ranks: who maps it, for how long, and what happens where that does not work.
#include "group/loans.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/floats.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

constexpr std::size_t some = 10'000;  // elements

// Interrupts the first wait that is long enough.
struct GivingUp final : WaitHooks {
  void about_to_block() override {}
  void check_interrupted() override { throw Interrupted(); }
};

// An operation of which the test says what a rank does while it reads.
class Reading final : public Operation {
 public:
  Reading(Floats& tensor, std::function<void()> read)
      : Operation(Call(OperationKind::barrier, Dtype::none)), tensor_(tensor), read_(std::move(read)) {}
  std::size_t bytes() const override { return some * sizeof(float); }
  Accesses accesses() override { return {}; }

 private:
  void load() override {}
  std::size_t contributed_bytes() const override { return bytes(); }
  void write_contribution(std::byte*) const override {}
  void read_lines(Group&, const Agreement&) override {}
  void read_rings(Group&, const Agreement&) override { throw std::runtime_error("not direct"); }
  void read_directly(Group&, const Agreement&, const DirectAccess&) override { read_(); }
  void lend_to(Loan& loan) const override { loan.add(0, {reinterpret_cast<std::byte*>(tensor_.data()), bytes()}); }
  void store() override {}

  Floats& tensor_;
  std::function<void()> read_;
};

void gather_all(Rank& me, Floats& output, Floats& input) {
  me.run(make_all_gather(me.seat(), output.as("output"), input.as("input"), no_splits("output_splits")));
}

}  // namespace

SHIM_TEST(one_private_tensor_sends_all_through_the_rings) {
  on_ranks(3, [](Rank& me) {
    for (int turn = 0; turn < 3; ++turn) {
      const bool is_shared = turn == 2 || me.rank() != 1;  // lent from the first time on, mapped in the last
      Floats input(some, is_shared, me.rank());
      Floats output(3 * some, false, 100);
      gather_all(me, output, input);
      CHECK_EQUAL(was_direct(me), turn == 2);
      check_gathered(me, output, some);
    }
  });
}

SHIM_TEST(what_is_freed_is_mapped_by_nobody) {
  const std::size_t before = mapped_files();
  std::atomic<int> arrived{0};
  const auto all_there = [&arrived](int times) {
    for (arrived.fetch_add(1); arrived.load() < 2 * times;) std::this_thread::yield();
  };
  on_ranks(2, [&](Rank& me) {
    for (int cycle = 0; cycle < 600; ++cycle) {  // there are not so many slots to lend
      Floats input(some, true, me.rank());
      Floats output(2 * some, true, 100);
      gather_all(me, output, input);
      CHECK(was_direct(me));
    }
    me.run(make_barrier(me.seat()));
    me.run(make_barrier(me.seat()));
    all_there(1);
    CHECK_EQUAL(mapped_files(), before + 1);  // the group's own
    all_there(2);
  });
  CHECK_EQUAL(mapped_files(), before);
}

SHIM_TEST(more_allocations_than_slots_are_lent_in_turn) {
  on_ranks(2, [](Rank& me) {
    std::vector<std::unique_ptr<Floats>> inputs;
    for (std::size_t i = 0; i < lent_allocations + 3; ++i)
      inputs.push_back(std::make_unique<Floats>(some, true, me.rank()));
    for (int round = 0; round < 2; ++round)
      for (const auto& input : inputs) {
        Floats output(2 * some, false, 100);
        gather_all(me, output, *input);
        CHECK(was_direct(me));
        check_gathered(me, output, some);
      }
  });
}

SHIM_TEST(what_is_not_there_is_not_mapped) {
  on_ranks(2, [](Rank& me) {
    const SharedAllocation memory(sizeof(float) * some);
    Place place{};
    me.group().message_loans().lend(memory.data() + 100, some, place);
    if (me.rank() == 0) me.group().channel(0, 1).source = place;
    me.run(make_barrier(me.seat()));
    if (me.rank() == 1) {
      const auto [allocation, slot, offset, bytes] = me.group().channel(0, 1).source;
      const auto is_mapped = [&me](const Place& there) { return me.group().message_loans().map(0, there) != nullptr; };
      const std::uint64_t left = memory.bytes() - offset;
      CHECK_EQUAL(bytes, std::uint64_t{some});
      CHECK(is_mapped({allocation, slot, offset, left}));
      CHECK(!is_mapped({allocation, slot, offset, left + 1}));
      CHECK(!is_mapped({allocation, slot, ~std::uint64_t{0}, bytes}));
      CHECK(!is_mapped({allocation, slot, offset, ~std::uint64_t{0}}));
      CHECK(!is_mapped({allocation, lent_allocations, offset, bytes}));
      CHECK(!is_mapped({allocation + 1, slot, offset, bytes}));
      CHECK(is_mapped({allocation, slot, offset, bytes}));
    }
    me.run(make_barrier(me.seat()));
  });
}

SHIM_TEST(memory_that_one_rank_cannot_map_goes_through_the_rings) {
  std::vector<Descriptor> gone(3);
  gone[1] = process_that_has_ended();
  for (const bool worked_before : {false, true})
    on_ranks(3, [&](Rank& me) {
      for (int turn = worked_before ? 0 : 1; turn < 3; ++turn) {
        if (turn == 1 && me.rank() == 2) me.group().set_processes(gone);
        Floats input(some, true, me.rank());
        Floats output(3 * some, true, 100);
        gather_all(me, output, input);
        CHECK_EQUAL(was_direct(me), turn == 0);
        check_gathered(me, output, some);
      }
    });
}

SHIM_TEST(a_rank_that_gives_up_while_another_still_reads_is_told_of) {
  std::atomic<bool> given_up{false};
  on_ranks(2, [&](Rank& me) {
    Floats tensor(some, true, me.rank());
    me.run(std::make_unique<Reading>(tensor, [] {}));
    if (me.rank() == 1) {
      GivingUp hooks;
      const WaitHooksScope scope(hooks);
      try {
        me.run(std::make_unique<Reading>(tensor, [] {}));
        throw std::runtime_error("not interrupted");
      } catch (const Interrupted&) {
      }
      given_up.store(true);
    } else {
      const auto kind = me.failure_of(std::make_unique<Reading>(tensor, [&] {
        while (!given_up.load()) std::this_thread::yield();
      }));
      CHECK_EQUAL(static_cast<int>(kind), static_cast<int>(FailureKind::peer_lost));
    }
  });
}

SHIM_TEST(a_rank_that_gave_up_is_told_of_instead_of_what_it_wrote_since) {
  for (const bool is_freed : {false, true}) {
    std::atomic<bool> overwritten{false};
    std::atomic<bool> ended{false};
    on_ranks(2, [&](Rank& me) {
      auto input = std::make_unique<Floats>(some, true, me.rank());
      Floats output(2 * some, true, 100);
      gather_all(me, output, *input);
      auto again = make_all_gather(me.seat(), output.as("output"), input->as("input"), no_splits("output_splits"));
      if (me.rank() == 1) {
        GivingUp hooks;
        const WaitHooksScope scope(hooks);
        try {
          me.run(std::move(again));
          throw std::runtime_error("not interrupted");
        } catch (const Interrupted&) {
        }
        std::fill_n(input->data(), some, -1.0f);
        if (is_freed) input.reset();
        overwritten.store(true);
        while (!ended.load()) std::this_thread::yield();
      } else {
        while (!overwritten.load()) std::this_thread::yield();
        const auto kind = me.failure_of(std::move(again));
        ended.store(true);
        CHECK_EQUAL(static_cast<int>(kind), static_cast<int>(FailureKind::peer_lost));
      }
    });
  }
}

SHIM_TEST(a_forked_child_has_the_memory_as_its_own) {
  SharedAllocation memory(8192);
  CHECK(SharedAllocation::find(memory.data() + 100, 8000).has_value());
  CHECK(!SharedAllocation::find(memory.data() + 100, 8192).has_value());
  for (const std::size_t behind : {8192, 8200}) CHECK(!SharedAllocation::find(memory.data() + behind, 1).has_value());
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_private = !SharedAllocation::find(memory.data(), 1).has_value();
    memory.data()[0] = std::byte{7};
    ::_exit(is_private ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK_EQUAL(status, 0);
  CHECK(memory.data()[0] == std::byte{7});
}
