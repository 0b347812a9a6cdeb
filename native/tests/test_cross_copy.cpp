// Long messages that both ranks copy from tensor to tensor: all sizes, what is declined, and ends in the middle.
#include "../cross_copy.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::size_t chunk = CrossCopy::chunk;

Thresholds offering_from(std::uint64_t bytes) {
  Thresholds thresholds = usual_thresholds();
  thresholds.offer = bytes;
  return thresholds;
}

Bytes message(std::size_t bytes, unsigned seed) {
  Bytes data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + seed);
  return data;
}

std::unique_ptr<TransferTask> send(Rank& me, Bytes& data, int peer, int tag = 0) {
  return std::make_unique<TransferTask>(me.progress(), view_of(data), true, peer, tag);
}

std::unique_ptr<TransferTask> receive(Rank& me, Bytes& data, int peer, int tag = 0) {
  return std::make_unique<TransferTask>(me.progress(), view_of(data), false, peer, tag);
}

FailureKind failure_of(TransferTask& task, double timeout = -1) {
  try {
    task.wait(timeout);
  } catch (const Failure& failure) {
    return failure.kind;
  }
  throw std::runtime_error("no failure");
}

std::byte* data_of(Bytes& bytes) { return reinterpret_cast<std::byte*>(bytes.data()); }
std::uint64_t address_of(const Bytes& bytes) { return reinterpret_cast<std::uintptr_t>(bytes.data()); }

// Both ends of a copy within this process.
struct BothEnds {
  BothEnds(Bytes& from, Bytes& to, int receivers_process = ::getpid())
      : sender(state, receivers_process, data_of(from), address_of(to), from.size()),
        receiver(state, ::getpid(), data_of(to), address_of(from), to.size()) {}
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
      CHECK(ends.receiver.can_read());
      CHECK(ends.sender.write_next() == CrossCopy::Step::waits);  // it is not open
      ends.receiver.open();
      for (int i = 0; i < written; ++i) ends.sender.write_next();
      ends.read_all();
      CHECK(to == from);
      CHECK_EQUAL(ends.receiver.bytes_taken(), bytes);
    }
}

SHIM_TEST(a_sender_that_cannot_write_leaves_it_to_the_receiver) {
  constexpr int no_process = 1 << 30;
  Bytes from = message(3 * chunk, 3);
  Bytes to(from.size());
  BothEnds ends(from, to, no_process);
  ends.receiver.open();
  CHECK(ends.sender.write_next() == CrossCopy::Step::moved);
  CHECK(ends.sender.write_next() == CrossCopy::Step::waits);  // once is enough
  ends.read_all();
  CHECK(to == from);
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

SHIM_TEST(offered_messages_of_all_sizes_go_around_a_ring) {
  for (const int size : {2, 3, 4, 7})
    on_ranks(
        size,
        [](Rank& me) {
          const int next = (me.rank() + 1) % me.size();
          const int before = (me.rank() + me.size() - 1) % me.size();
          for (const std::size_t bytes :
               {std::size_t{0}, std::size_t{1}, std::size_t{1000}, chunk - 1, chunk, chunk + 1, 5 * chunk + 77}) {
            Bytes mine = message(bytes, static_cast<unsigned>(me.rank()));
            Bytes got(bytes, 1);
            const auto sent = send(me, mine, next);
            sent->start();
            receive(me, got, before)->wait(-1);
            sent->wait(-1);
            CHECK(got == message(bytes, static_cast<unsigned>(before)));
          }
        },
        60, offering_from(1));
}

SHIM_TEST(what_nobody_waits_for_and_what_has_gaps_is_declined) {
  on_ranks(
      2,
      [](Rank& me) {
        for (const std::size_t bytes : {std::size_t{12}, 3 * chunk}) {
          if (me.rank() == 0) {
            std::vector<Bytes> data;
            std::vector<std::unique_ptr<TransferTask>> sent;
            for (int tag = 0; tag < 3; ++tag) data.push_back(message(bytes, static_cast<unsigned>(tag)));
            for (int tag = 0; tag < 3; ++tag) {
              sent.push_back(send(me, data[static_cast<std::size_t>(tag)], 1, tag));
              sent.back()->start();
            }
            for (const auto& task : sent) task->wait(-1);
          } else {
            for (const int tag : {2, 0}) {
              Bytes got(bytes);
              receive(me, got, 0, tag)->wait(-1);
              CHECK(got == message(bytes, static_cast<unsigned>(tag)));
            }
            Bytes wide(2 * bytes);
            TensorView view = view_of(wide, {static_cast<std::int64_t>(bytes)});
            view.strides[0] = 2;
            TransferTask(me.progress(), view, false, 0, 1).wait(-1);
            const Bytes whole = message(bytes, 1);
            for (std::size_t i = 0; i < bytes; ++i) CHECK(wide[2 * i] == whole[i] && wide[2 * i + 1] == 0);
          }
          me.run(make_barrier(me.seat()));
        }
      },
      60, offering_from(1));
}

SHIM_TEST(an_offer_that_does_not_fit_is_refused_and_the_next_one_arrives) {
  on_ranks(
      2,
      [](Rank& me) {
        Bytes wrong = message(3 * chunk, 0);
        Bytes right = message(2 * chunk, 1);
        if (me.rank() == 0) {
          CHECK(failure_of(*send(me, wrong, 1)) == FailureKind::mismatch);
          send(me, right, 1)->wait(-1);
        } else {
          Bytes got(2 * chunk, 9);
          CHECK(failure_of(*receive(me, got, 0)) == FailureKind::mismatch);
          CHECK(std::all_of(got.begin(), got.end(), [](std::uint8_t x) { return x == 9; }));
          receive(me, got, 0)->wait(-1);
          CHECK(got == right);
        }
      },
      60, offering_from(1));
}

SHIM_TEST(nothing_is_written_after_a_receive_was_withdrawn) {
  on_ranks(
      2,
      [](Rank& me) {
        Bytes data = message(16 * chunk, 5);
        for (int time = 0; time < 200; ++time) {
          if (me.rank() == 0) {
            send(me, data, 1)->wait(-1);
          } else {
            Bytes got(data.size());
            const std::uint64_t before = me.progress().messages().pieces_moved();
            auto task = receive(me, got, 0);
            task->start();
            while (me.progress().messages().pieces_moved() == before) std::this_thread::yield();
            const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(time * 2);
            while (std::chrono::steady_clock::now() < until) {
            }
            task.reset();
            // The last byte of a chunk is what a writer of it comes to last.
            for (std::size_t end = chunk; end <= got.size(); end += chunk) got[end - 1] = 99;
            std::this_thread::sleep_for(std::chrono::microseconds(300));
            for (std::size_t end = chunk; end <= got.size(); end += chunk) CHECK_EQUAL(int{got[end - 1]}, 99);
          }
          me.run(make_barrier(me.seat()));
        }
      },
      60, offering_from(1));
}

SHIM_TEST(a_receive_raises_when_its_sender_gives_up_in_the_middle) {
  on_ranks(
      2,
      [](Rank& me) {
        Bytes data = message(64 * chunk, 5);
        if (me.rank() == 0) {
          auto task = send(me, data, 1);
          task->start();
          while (me.progress().messages().pieces_moved() < 4 && !task->is_completed()) std::this_thread::yield();
          task.reset();
          std::fill(data.begin(), data.end(), std::uint8_t{0});
        } else {
          Bytes got(data.size());
          try {
            receive(me, got, 0)->wait(-1);
            CHECK(got == data);  // it was over before
          } catch (const Failure& failure) {
            CHECK(failure.kind == FailureKind::peer_lost);
          }
        }
      },
      60, offering_from(1));
}

SHIM_TEST(a_tensor_that_cannot_be_read_fails_the_group) {
  on_ranks(
      2,
      [](Rank& me) {
        constexpr std::size_t bytes = 4 * chunk;
        if (me.rank() == 0) {
          void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          ::mprotect(static_cast<std::byte*>(memory) + bytes / 2, bytes / 2, PROT_NONE);
          Bytes shape(bytes);
          TensorView view = view_of(shape);
          view.data = static_cast<std::byte*>(memory);
          TransferTask task(me.progress(), view, true, 1, 0);
          CHECK(failure_of(task) == FailureKind::peer_lost);
          ::munmap(memory, bytes);
        } else {
          Bytes got(bytes);
          const auto task = receive(me, got, 0);
          CHECK(failure_of(*task) == FailureKind::engine);
        }
      },
      60, offering_from(1));
}

SHIM_TEST(a_receive_stays_exposed_while_a_sender_that_left_may_write) {
  on_ranks(
      2,
      [](Rank& me) {
        Bytes data = message(64 * chunk, 5);
        const std::uint64_t first = first_number();
        if (me.rank() == 1) {
          const auto task = receive(me, data, 0);
          CHECK(failure_of(*task) == FailureKind::peer_lost);
          CHECK(task->is_exposed());
          return;
        }
        // A sender that takes a chunk, and is not seen to write it.
        ChannelSlot& slot = me.group().channel_slot(0, 1, first);
        const std::uint64_t address = address_of(data);
        slot.message = first + 1;
        slot.bytes = data.size();
        slot.offset = 0;
        slot.tag = 0;
        slot.dtype = Dtype::uint8;
        slot.is_offer = true;
        std::memcpy(slot.small, &address, sizeof(address));
        slot.number.exchange(first + 1);
        Channel& channel = me.group().channel(0, 1);
        while (channel.answered.load() != first + 1) std::this_thread::yield();
        for (std::uint64_t word = channel.copy.untaken.load();
             !channel.copy.untaken.compare_exchange_weak(word, word - (std::uint64_t{1} << 32));) {
        }
        me.group().leave();
        std::this_thread::sleep_for(std::chrono::milliseconds(300));  // its tensor is being read
      },
      60, offering_from(1));
}

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
      60, offering_from(1));
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
      60, offering_from(1));
}

SHIM_TEST(a_broadcast_ends_on_both_ranks_when_one_leaves) {
  for (const int leaver : {0, 1})
    on_ranks(
        2,
        [leaver](Rank& me) {
          Bytes data = message(64 * chunk, 5);
          me.run(make_broadcast(me.seat(), one("tensor", data), 0));
          if (me.rank() == leaver)
            me.group().leave();
          else
            CHECK(me.failure_of(make_broadcast(me.seat(), one("tensor", data), 0)) == FailureKind::peer_lost);
        },
        60, offering_from(1));
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
      60, offering_from(1));
}
