// A copy of one tensor to another by two ranks: where they meet, and ends in the middle.
#include <memory>

#include "tests/cross_memory.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

// What another end has mapped, which frees nothing.
std::shared_ptr<std::byte> mapped(Bytes& bytes) { return {std::shared_ptr<void>(), data_of(bytes)}; }

// Both ends of a copy within this process.
struct BothEnds {
  BothEnds(Bytes& from, Bytes& to, bool sender_writes = true)
      : sender(state, data_of(from), sender_writes ? mapped(to) : nullptr, from.size(), false),
        receiver(state, data_of(to), mapped(from), to.size(), true) {}
  void read_all() {
    while (receiver.read_next(1) != LentCopy::Step::done) {
    }
  }

  LentCopyState state{};
  LentCopy sender;
  LentCopy receiver;
};

}  // namespace

SHIM_TEST(the_ranks_meet_wherever_one_is_late) {
  for (const std::size_t bytes : {std::size_t{1}, chunk, 3 * chunk + 5})
    for (int written = 0; written <= 4; ++written) {
      Bytes from = message(bytes, 3);
      Bytes to(bytes);
      BothEnds ends(from, to);
      CHECK(ends.sender.write_next() == LentCopy::Step::waits);  // it is not open
      ends.receiver.open();
      for (int i = 0; i < written; ++i) ends.sender.write_next();
      ends.read_all();
      CHECK(to == from);
      CHECK_EQUAL(ends.receiver.bytes_taken(), bytes);
    }
}

SHIM_TEST(a_sender_that_has_not_mapped_the_receivers_tensor_leaves_it_to_the_receiver) {
  Bytes from = message(3 * chunk, 3);
  Bytes to(from.size());
  BothEnds ends(from, to, false);
  ends.receiver.open();
  CHECK(ends.sender.write_next() == LentCopy::Step::waits);
  ends.read_all();
  CHECK(to == from);
}

SHIM_TEST(a_closed_copy_is_quiet_once_the_chunk_that_was_begun_is_written) {
  Bytes from = message(4 * chunk, 3);
  Bytes to(from.size());
  BothEnds ends(from, to);
  ends.receiver.open();
  CHECK(ends.receiver.read_next(1) == LentCopy::Step::moved);
  CHECK(ends.sender.write_next() == LentCopy::Step::moved);
  ends.state.untaken.store(std::uint64_t{2} << 32 | 1);  // it has taken another one
  CHECK(!ends.receiver.end([] { return false; }));
  CHECK(ends.sender.write_next() == LentCopy::Step::waits);
  CHECK(ends.receiver.end([] { return true; }));
  ends.state.written.fetch_add(1);
  CHECK(ends.receiver.end([] { return false; }));
}

SHIM_TEST(what_was_given_up_meanwhile_is_never_done) {
  Bytes from = message(2 * chunk, 3);
  Bytes to(from.size());
  BothEnds ends(from, to);
  ends.receiver.open();
  ends.state.given_up.store(7);
  while (ends.receiver.read_next(7) == LentCopy::Step::moved) {
  }
  CHECK(ends.receiver.read_next(7) == LentCopy::Step::waits);
  CHECK(ends.receiver.read_next(8) == LentCopy::Step::done);
}

SHIM_TEST(what_the_other_rank_says_addresses_nothing) {
  Bytes from = message(2 * chunk, 3);
  Bytes to(from.size());
  BothEnds ends(from, to);
  for (const std::uint64_t word : {~std::uint64_t{0}, std::uint64_t{3} << 32, std::uint64_t{1} << 32 | 2}) {
    ends.state.untaken.store(word);
    CHECK(ends.sender.write_next() == LentCopy::Step::waits);
    CHECK(ends.receiver.read_next(1) != LentCopy::Step::moved);
  }
}
