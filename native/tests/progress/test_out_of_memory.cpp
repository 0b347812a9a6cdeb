// A rank that has no memory for an operation tells the others, whatever it was in the middle of.
#include <new>
#include <string>

#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

enum class Phase { load, lend, read, none };

// An operation like a barrier of so many bytes, which runs out of memory in `phase`.
class Starved final : public Operation {
 public:
  Starved(Phase phase, std::size_t bytes)
      : Operation(Call(OperationKind::barrier, Dtype::none)), phase_(phase), bytes_(bytes) {
    call_.descriptor.largest = bytes;
  }
  std::size_t bytes() const override { return bytes_; }
  Accesses accesses() override { return {}; }
  bool has_been_read = false;

 private:
  void reach(Phase phase) const {
    if (phase == phase_) throw std::bad_alloc();
  }
  void load() override { reach(Phase::load); }
  std::size_t contributed_bytes() const override { return bytes_; }
  void write_contribution(std::byte*) const override {}
  void read_lines(Group& group, const Agreement&) override { read(group); }
  void read_rings(Group& group, const Agreement&) override { read(group); }
  void read_directly(Group& group, const Agreement&, const DirectAccess&) override { read(group); }
  void lend_to(Loan&) const override { reach(Phase::lend); }
  void store() override {}
  void read(Group& group) {
    reach(Phase::read);
    has_been_read = true;
    const auto has_read = [&group](int rank) { return group.progress(rank).done.load() > 0; };
    group.progress(group.rank()).done.exchange(1);
    group.ring_bells();
    for (int rank = 0; rank < group.size(); ++rank)
      if (rank != group.rank()) group.wait_for(rank, has_read);
  }

  Phase phase_;
  std::size_t bytes_;
};

// What ended it on this rank; nothing when it went well.
std::optional<Failure> outcome(Rank& me, Phase phase, std::size_t bytes, bool in_background) {
  auto operation = std::make_unique<Starved>(phase, bytes);
  try {
    if (in_background)
      me.start(std::move(operation))->wait(-1);
    else
      me.run(std::move(operation));
  } catch (const Failure& failure) {
    return failure;
  }
  return std::nullopt;
}

bool says(const Failure& failure, const std::string& what) {
  return std::string(failure.what()).find(what) != std::string::npos;
}

constexpr std::size_t sizes[] = {8, 10'000'000};

}  // namespace

SHIM_TEST(no_memory_before_the_others_know_of_the_call_is_a_refusal) {
  for (const bool in_background : {false, true})
    for (const std::size_t bytes : sizes)
      on_ranks(3, [&](Rank& me) {
        const auto failure = outcome(me, me.rank() == 1 ? Phase::load : Phase::none, bytes, in_background);
        CHECK(failure.has_value());
        CHECK(failure->kind == (me.rank() == 1 ? FailureKind::memory : FailureKind::mismatch));
        CHECK(says(*failure, "not enough memory"));
        CHECK(!outcome(me, Phase::none, bytes, in_background));  // the group can still be used
      });
}

SHIM_TEST(no_memory_in_the_middle_ends_the_group_at_once) {
  for (const bool in_background : {false, true})
    for (const std::size_t bytes : sizes)
      on_ranks(3, [&](Rank& me) {
        const auto failure = outcome(me, me.rank() == 1 ? Phase::read : Phase::none, bytes, in_background);
        CHECK(failure.has_value());
        CHECK(failure->kind == (me.rank() == 1 ? FailureKind::engine : FailureKind::peer_lost));
        CHECK(says(*failure, "not enough memory"));
        if (me.rank() != 1) CHECK_EQUAL(failure->ranks.at(0), 1);
      });
}

SHIM_TEST(no_memory_to_lend_is_no_error) {
  on_ranks(3, [](Rank& me) { CHECK(!outcome(me, me.rank() == 1 ? Phase::lend : Phase::none, sizes[1], false)); });
}

// Sanitizers' allocators end the process instead.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

SHIM_TEST(no_memory_for_a_message_is_told_and_nothing_is_sent) {
  on_ranks(2, [](Rank& me) {
    std::vector<std::int64_t> data = {me.rank(), 7};
    if (me.rank() == 0) {
      TensorView huge = view_of(data);
      huge.shape[0] = std::int64_t{1} << 60;  // more than any allocator is asked for
      huge.strides[0] = 2;
      for (const bool is_started : {false, true})
        for (const bool is_send : {false, true}) {
          TransferTask task(me.progress(), huge, is_send, 1, 0);
          try {
            is_started ? task.start() : task.wait(-1);
            throw std::runtime_error("there was memory");
          } catch (const Failure& failure) {
            CHECK(failure.kind == FailureKind::memory);
          }
        }
    }
    TransferTask(me.progress(), view_of(data), me.rank() == 0, 1 - me.rank(), 0).wait(-1);
    CHECK_EQUAL(data[0], 0);
    CHECK(!me.progress().messages().has_pending());
  });
}

SHIM_TEST(no_memory_to_put_a_message_aside_ends_the_group) {
  on_ranks(2, [](Rank& me) {
    std::vector<std::int64_t> data = {1};
    TensorView view = view_of(data);
    if (me.rank() == 0) {  // as a sender of more than there is would do it
      ChannelSlot& slot = me.group().channel_slot(0, 1, 0);
      slot.message = 1;
      slot.bytes = std::uint64_t{1} << 63;
      slot.tag = 5;
      slot.dtype = Dtype::int64;
      slot.number.exchange(1);
    }
    TransferTask receiving(me.progress(), view, false, 1 - me.rank(), 6);
    try {
      receiving.start();
      receiving.wait(-1);
      throw std::runtime_error("there was memory");
    } catch (const Failure& failure) {
      CHECK(failure.kind == (me.rank() == 1 ? FailureKind::engine : FailureKind::peer_lost));
      CHECK(says(failure, "not enough memory to put aside"));
    }
  });
}

#endif
