// Ranks that come too late, or just in time: every rank gets the result, or none does.
#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "collectives/direct.hpp"
#include "collectives/exchange.hpp"
#include "tests/floats.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;
using Make = std::unique_ptr<Operation> (*)(Rank&, std::vector<std::int64_t>& output, std::vector<std::int64_t>& input);

// Each with as many elements of input and output as there are ranks, times some number.
const std::vector<Make> collectives = {
    [](Rank& me, auto& output, auto&) { return make_broadcast(me.seat(), one("tensor", output), 0); },
    [](Rank& me, auto& output, auto&) { return make_broadcast(me.seat(), one("tensor", output), me.size() - 1); },
    [](Rank& me, auto& output, auto& input) {
      return make_all_reduce(me.seat(), one("output", output), one("input", input), sum);
    },
    [](Rank& me, auto& output, auto& input) {
      return make_reduce(me.seat(), one("output", output), one("input", input), sum, 0);
    },
    [](Rank& me, auto& output, auto& input) {
      input.resize(input.size() / static_cast<std::size_t>(me.size()));
      return make_all_gather(me.seat(), one("output", output), one("input", input), no_splits("output_splits"));
    },
    [](Rank& me, auto& output, auto& input) {
      input.resize(input.size() / static_cast<std::size_t>(me.size()));
      return make_gather(me.seat(), one("output", output), one("input", input), no_splits("output_splits"), 0);
    },
    [](Rank& me, auto& output, auto& input) {
      output.resize(output.size() / static_cast<std::size_t>(me.size()));
      return make_scatter(me.seat(), one("output", output), one("input", input), no_splits("input_splits"), 0);
    },
    [](Rank& me, auto& output, auto& input) {
      output.resize(output.size() / static_cast<std::size_t>(me.size()));
      return make_reduce_scatter(me.seat(), one("output", output), one("input", input), no_splits("input_splits"), sum);
    },
    [](Rank& me, auto& output, auto& input) {
      return make_all_to_all(me.seat(), one("output", output), one("input", input), no_splits("output_splits"),
                             no_splits("input_splits"));
    },
    [](Rank& me, auto&, auto&) { return make_barrier(me.seat(), ""); },
};

// Has a rank that waits in an operation stand still, when it has polled so often, as long as it `is_to_stand`.
class StandsStill final : public BackgroundWork {
 public:
  StandsStill(int polls, std::function<bool()> is_to_stand) : polls_(polls), is_to_stand_(std::move(is_to_stand)) {}

 private:
  bool advance() override {
    if (polls_-- == 0)
      while (is_to_stand_()) std::this_thread::yield();
    return false;
  }

  int polls_;
  std::function<bool()> is_to_stand_;
};

// Carries out the operation and counts its rank in `with` if it has the result, which it has unless ranks came too
// late, and in `over` in any case.
void count_result(Rank& me, Operation& operation, std::atomic<int>& with, std::atomic<int>& over) {
  try {
    me.progress().run_now(operation);
    ++with;
  } catch (const Failure& failure) {
    CHECK(failure.kind == FailureKind::timeout || failure.kind == FailureKind::peer_lost);
  }
  me.group().set_background_work(nullptr);
  ++over;
}

// How many ranks have the result, where the last one comes when `wait` says so, and stands still after so many polls,
// unless that is negative, until another one is gone or all others are done.
int with_result(Make make, int size, std::size_t count, const std::function<void(Group&)>& wait, int polls = -1) {
  std::atomic<int> with{0};
  std::atomic<int> over{0};
  on_ranks(
      size,
      [&](Rank& me) {
        std::vector<std::int64_t> output(count * static_cast<std::size_t>(size), -1);
        std::vector<std::int64_t> input(output.size(), 1);
        const std::unique_ptr<Operation> operation = make(me, output, input);
        StandsStill still(polls, [&] { return over.load() < size - 1 && !me.group().is_gone(0); });
        if (me.rank() == size - 1) {
          wait(me.group());
          me.group().set_background_work(&still);
        }
        count_result(me, *operation, with, over);
      },
      0.001);
  return with;
}

// Has a rank give up as it waits for others to reserve memory, when all have done that and some may have gone on.
class GivesUpInReserve final : public BackgroundWork {
 public:
  GivesUpInReserve(Group& group, std::atomic<bool>& waits, const std::atomic<int>& over)
      : group_(group), waits_(waits), over_(over) {}

 private:
  bool has_tried(int rank) const { return group_.progress(rank).tried_to_reserve.load() >= group_.sequence; }
  bool advance() override {
    if (!has_tried(group_.rank())) return false;
    waits_ = true;
    for (int rank = 0; rank < group_.size(); ++rank)
      while (!has_tried(rank)) std::this_thread::yield();
    const auto until = std::chrono::steady_clock::now() + Milliseconds(20);
    while (over_.load() < group_.size() - 1 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    if (group_.withdraw()) group_.fail(Failure(FailureKind::timeout, "given up"));
    return false;
  }

  Group& group_;
  std::atomic<bool>& waits_;
  const std::atomic<int>& over_;
};

// Rank 0 broadcasts through the rings. Where the tensors can be lent, the test has some rank unable to map them.
class ThroughRings final : public Operation {
 public:
  static constexpr std::size_t count = 20'000;

  ThroughRings(Floats& tensor, std::function<void()> before)
      : Operation(call_of_rank_0()), tensor_(tensor), before_(std::move(before)) {}
  std::size_t bytes() const override { return count * sizeof(float); }
  Accesses accesses() override { return {}; }

 private:
  static Call call_of_rank_0() {
    Call call(OperationKind::broadcast, Dtype::none);
    call.descriptor.root = 0;
    return call;
  }
  void load() override {}
  std::size_t contributed_bytes() const override { return bytes(); }
  void write_contribution(std::byte*) const override {}
  void read_lines(Group&, const Agreement&) override {}
  void read_rings(Group& group, const Agreement&) override {
    before_();
    Exchange exchange(group, SlotSize::large, bytes(), ring_slot_bytes);
    exchange.run([](std::uint64_t) {},
                 [&](std::uint64_t step) {
                   if (group.rank() != 0) exchange.slot_of(0, step);
                 });
  }
  void read_directly(Group&, const Agreement&, const DirectAccess&) override { throw std::runtime_error("direct"); }
  void lend_to(Loan& loan) const override { loan.add(0, {reinterpret_cast<std::byte*>(tensor_.data()), bytes()}); }
  void store() override {}

  Floats& tensor_;
  std::function<void()> before_;
};

constexpr std::size_t counts[] = {1, 100, 3000, 100'000};  // in the lines, small slots, one large one, several

}  // namespace

SHIM_TEST(a_rank_that_comes_after_another_gave_up_gets_no_result) {
  for (const Make make : collectives)
    for (const int size : {2, 3, 4})
      for (const std::size_t count : counts) {
        const auto until_rank_0_is_gone = [](Group& group) {
          while (!group.is_gone(0)) std::this_thread::yield();
        };
        CHECK_EQUAL(with_result(make, size, count, until_rank_0_is_gone), 0);
      }
}

// So near to the moment in which the others give up that it may be before or after, as often as not.
SHIM_TEST(a_rank_that_comes_as_others_give_up_gets_what_they_get) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> late(49.5, 50.8);  // a rank that sleeps looks at the clock after 50 ms
  for (int round = 0; round < 2; ++round)
    for (const Make make : collectives)
      for (const int size : {2, 3, 4})
        for (const std::size_t count : {counts[0], counts[2]}) {
          const Milliseconds pause(late(random));
          const int with = with_result(make, size, count, [&](Group&) { std::this_thread::sleep_for(pause); });
          CHECK(with == 0 || with == size);
        }
}

SHIM_TEST(a_rank_that_stands_still_in_the_middle_gets_what_the_others_get) {
  std::mt19937 random(2);
  std::uniform_int_distribution<int> polls(0, 40);
  for (int round = 0; round < 3; ++round)
    for (const Make make : collectives)
      for (const int size : {2, 3, 4})
        for (const std::size_t count : {counts[2], counts[3]}) {
          const int with = with_result(make, size, count, [](Group&) {}, polls(random));
          CHECK(with == 0 || with == size);
        }
}

SHIM_TEST(a_rank_that_gives_up_while_memory_is_reserved_gets_what_the_others_get) {
  for (const Make make : collectives) {
    std::atomic<int> with{0};
    std::atomic<int> over{0};
    std::atomic<bool> waits{false};
    on_ranks(3, [&](Rank& me) {
      std::vector<std::int64_t> output(9000, -1);
      std::vector<std::int64_t> input(output.size(), 1);
      const std::unique_ptr<Operation> operation = make(me, output, input);
      GivesUpInReserve gives_up(me.group(), waits, over);
      StandsStill stands_still(0, [&] { return !waits && over == 0; });
      if (me.rank() == 0) std::this_thread::sleep_for(Milliseconds(5));  // so that the others wait for its arrival
      if (me.rank() == 1) me.group().set_background_work(&gives_up);
      if (me.rank() == 2) me.group().set_background_work(&stands_still);
      count_result(me, *operation, with, over);
    });
    CHECK(with == 0 || with == 3);
  }
}

// The last rank that tries to map what the others lend, and to reserve, lets the others come to where they wait for it.
SHIM_TEST(a_rank_that_gives_up_in_the_second_of_two_agreements_gets_what_the_others_get) {
  for (const bool lends : {false, true}) {
    std::atomic<int> with{0};
    std::atomic<int> over{0};
    std::atomic<bool> waits{false};
    on_ranks(3, [&](Rank& me) {
      if (me.rank() == 2) {  // it can map nothing of rank 1's
        std::vector<Descriptor> processes(3);
        processes[1] = process_that_has_ended();
        me.group().set_processes(processes);
      }
      Floats tensor(ThroughRings::count, lends, me.rank());
      GivesUpInReserve gives_up(me.group(), waits, over);
      ThroughRings operation(tensor, [&] {
        while (me.rank() == 2 && !waits && over == 0) std::this_thread::yield();
      });
      if (me.rank() == 1) me.group().set_background_work(&gives_up);
      count_result(me, operation, with, over);
    });
    CHECK(waits);
    CHECK(with == 0 || with == 3);
  }
}
