// A copy of one tensor to another by two ranks: where they meet, and ends in the middle.
#include <unistd.h>

#include <atomic>
#include <thread>

#include "cross_memory.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

constexpr int no_process = 1 << 30;

// Both ends of a copy within this process.
struct BothEnds {
  BothEnds(Bytes& from, Bytes& to, int receivers_process = ::getpid())
      : sender(state, data_of(from), RemoteTensor(receivers_process, address_of(to)), from.size()),
        receiver(state, data_of(to), RemoteTensor(::getpid(), address_of(from)), to.size()) {}
  void read_all() {
    while (receiver.read_next(1) != CrossCopy::Step::done) {
    }
  }

  CrossCopyState state{};
  CrossCopy sender;
  CrossCopy receiver;
};

}  // namespace

SHIM_TEST(the_ranks_meet_wherever_one_is_late) {
  for (const std::size_t bytes : {std::size_t{1}, chunk, 3 * chunk + 5})
    for (int written = 0; written <= 4; ++written) {
      Bytes from = message(bytes, 3);
      Bytes to(bytes);
      BothEnds ends(from, to);
      CHECK(ends.sender.write_next() == CrossCopy::Step::waits);  // it is not open
      ends.receiver.open();
      for (int i = 0; i < written; ++i) ends.sender.write_next();
      ends.read_all();
      CHECK(to == from);
      CHECK_EQUAL(ends.receiver.bytes_taken(), bytes);
    }
}

SHIM_TEST(a_sender_that_cannot_write_leaves_it_to_the_receiver) {
  Bytes from = message(3 * chunk, 3);
  Bytes to(from.size());
  BothEnds ends(from, to, no_process);
  ends.receiver.open();
  CHECK(ends.sender.write_next() == CrossCopy::Step::moved);
  CHECK(ends.sender.write_next() == CrossCopy::Step::waits);  // once is enough
  ends.read_all();
  CHECK(to == from);
}

SHIM_TEST(what_a_late_sender_cannot_write_is_read_all_the_same) {
  for (const std::size_t chunks : {1, 3})
    for (int time = 0; time < 500; ++time) {
      Bytes from(chunks * chunk, 7);
      Bytes to(from.size());
      BothEnds ends(from, to, no_process);
      ends.receiver.open();
      std::atomic<bool> has_begun{false};
      std::thread sender([&] {
        has_begun = true;
        ends.sender.write_next();
      });
      while (!has_begun) {
      }
      ends.read_all();
      const bool is_all_there = to == from;
      sender.join();
      CHECK(is_all_there);
    }
}

SHIM_TEST(a_closed_copy_is_quiet_once_the_chunk_that_was_begun_is_written) {
  Bytes from = message(4 * chunk, 3);
  Bytes to(from.size());
  BothEnds ends(from, to);
  ends.receiver.open();
  CHECK(ends.receiver.read_next(1) == CrossCopy::Step::moved);
  CHECK(ends.sender.write_next() == CrossCopy::Step::moved);
  ends.state.untaken.store(std::uint64_t{2} << 32 | 1);  // it has taken another one
  CHECK(!ends.receiver.end([] { return false; }));
  CHECK(ends.sender.write_next() == CrossCopy::Step::waits);
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
  while (ends.receiver.read_next(7) == CrossCopy::Step::moved) {
  }
  CHECK(ends.receiver.read_next(7) == CrossCopy::Step::waits);
  CHECK(ends.receiver.read_next(8) == CrossCopy::Step::done);
}

SHIM_TEST(what_the_other_rank_says_addresses_nothing) {
  Bytes from = message(2 * chunk, 3);
  Bytes to(from.size());
  BothEnds ends(from, to);
  for (const std::uint64_t word : {~std::uint64_t{0}, std::uint64_t{3} << 32, std::uint64_t{1} << 32 | 2}) {
    ends.state.untaken.store(word);
    CHECK(ends.sender.write_next() == CrossCopy::Step::waits);
    CHECK(ends.receiver.read_next(1) != CrossCopy::Step::moved);
  }
}
