// What ranks tell of themselves and of each other: their lines, last calls, waits and endings.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "group/descriptions.hpp"
#include "platform/process.hpp"
#include "platform/shared_text.hpp"
#include "reports/inquiries.hpp"
#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

using namespace std::chrono_literals;

// Whoever calls from a line of a program.
class Program final : public WaitHooks {
 public:
  explicit Program(std::string place) : place_(std::move(place)) {}
  void about_to_block() override {}
  void check_interrupted() override {}
  std::string place() override { return place_; }
  Held held() const override { return Held::thread; }

 private:
  std::string place_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string line_of(int rank) { return "train.py:" + std::to_string(10 + rank); }

// How a child process ended that does `body`, before its parent asks for its status, and after.
template <class Body>
std::pair<std::string, std::string> endings_of(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  const Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  pollfd ended{pidfd.get(), POLLIN, 0};
  CHECK_EQUAL(::poll(&ended, 1, 10'000), 1);
  const std::string before = how_it_ended(pidfd.get(), child);
  ::waitpid(child, nullptr, 0);
  return {before, how_it_ended(pidfd.get(), child)};
}

}  // namespace

SHIM_TEST(shared_text_is_cut_between_words_or_characters) {
  alignas(8) std::byte memory[sizeof(SharedText<8>)] = {};
  auto& text = *reinterpret_cast<SharedText<8>*>(memory);
  CHECK_EQUAL(text.read(), "");
  text.write("12345678");
  CHECK_EQUAL(text.read(), "12345678");
  text.write(
      "1234\xc3\xa4"
      "67890");  // an umlaut of two bytes, of which one would fit
  CHECK_EQUAL(text.read(), "1234...");
  text.write("123 567890");
  CHECK_EQUAL(text.read(), "123...");
  text.write("");
  CHECK_EQUAL(text.read(), "");
}

SHIM_TEST(shared_text_is_read_whole_or_not_at_all) {
  alignas(8) std::byte memory[sizeof(SharedText<64>)] = {};
  auto& text = *reinterpret_cast<SharedText<64>*>(memory);
  std::thread writer([&text] {
    for (int i = 0; i < 2000; ++i)
      text.write(std::string(static_cast<std::size_t>(i % 64), static_cast<char>('a' + i % 26)));
  });
  for (int i = 0; i < 2000; ++i) {
    const std::string seen = text.read();
    CHECK(seen.empty() || seen.find_first_not_of(seen[0]) == std::string::npos);
  }
  writer.join();
}

SHIM_TEST(every_rank_reads_the_lines_of_all) {
  on_ranks(3, [](Rank& me) {
    Program program(line_of(me.rank()));
    const WaitHooksScope scope(program);
    for (int round = 0; round < 6; ++round) {  // more than a rank has slots for its calls
      std::vector<std::int64_t> data(me.rank() == 2 ? 2 : 1);
      try {
        me.run(summing(me, data));
        throw std::runtime_error("no mismatch");
      } catch (const Failure& failure) {
        const std::string text = failure.what();
        for (int rank = 0; rank < 3; ++rank) CHECK(has(text, ", SUM), at " + line_of(rank)));
        CHECK(has(text, "They differ: [1] on ranks 0 and 1, [2] on rank 2."));
      }
    }
  });
}

SHIM_TEST(a_refusal_brings_its_line) {
  on_ranks(2, [](Rank& me) {
    if (me.rank() == 0) {
      me.progress().refuse({"its argument was wrong", line_of(0)});
      std::vector<std::int64_t> data = {1};
      return me.run(summing(me, data));
    }
    std::vector<std::int64_t> data = {1};
    try {
      me.run(summing(me, data));
      throw std::runtime_error("no mismatch");
    } catch (const Failure& failure) {
      CHECK(has(failure.what(), "refused: its argument was wrong, at " + line_of(0)));
    }
    me.run(summing(me, data));
  });
}

SHIM_TEST(the_last_calls_are_those_of_each_rank) {
  on_ranks(2, [](Rank& me) {
    std::vector<std::int64_t> data = {1};
    for (int i = 0; i < 9; ++i) me.run(summing(me, data));
    me.run(make_barrier(me.seat()));
    for (int rank = 0; rank < 2; ++rank)
      CHECK_EQUAL(last_calls(me.group(), rank),
                  "10 barrier(), 9 all_reduce(int64 [1], SUM), 8 all_reduce(int64 [1], SUM)");
  });
}

SHIM_TEST(a_timeout_tells_where_everybody_is) {
  on_ranks(
      3,
      [](Rank& me) {
        Program program(line_of(me.rank()));
        const WaitHooksScope scope(program);
        if (me.rank() == 1) return std::this_thread::sleep_for(1500ms);  // as if it computed
        try {
          me.run(make_barrier(me.seat()));
          throw std::runtime_error("no timeout");
        } catch (const Failure& failure) {
          const std::string text = failure.what();
          if (failure.kind == FailureKind::peer_lost) return CHECK(has(text, "gave the group up"));  // a bit later
          CHECK(failure.kind == FailureKind::timeout);
          CHECK(has(text, "not arrived: rank 1\n"));
          CHECK(has(text, "operation 1, barrier(), at " + line_of(me.rank()) + "\n    last calls: 1 barrier()"));
          CHECK(has(text, "\n  rank 1 (pid " + std::to_string(::getpid())));
        }
      },
      1.0);
}

SHIM_TEST(a_process_answers_what_it_waits_for) {
  on_ranks(2, [](Rank& me) {
    Program program(line_of(me.rank()));
    const WaitHooksScope scope(program);
    if (me.rank() == 0) {
      const std::string address = Inquiries::tell_of(me.group(), 77);
      CHECK(!address.empty());
      me.run(make_barrier(me.seat()));
      Inquiries::forget(me.group());
      return;
    }
    static std::atomic<int> asked_of_program{0};
    set_place_teller([] {
      ++asked_of_program;
      return std::string("train.py:5");
    });
    std::this_thread::sleep_for(300ms);
    const std::string address = Inquiries::tell_of(me.group(), 78);
    const Answer answer = ask_process(address, std::chrono::steady_clock::now() + 5s);
    CHECK(answer.came);
    CHECK(has(answer.waits, "operation 1, barrier(), at " + line_of(0) + " (of group 'test')"));
    CHECK(has(answer.facts, "\"inode\":77,\"name\":\"test\",\"engine\":"));
    CHECK(has(answer.facts, ",\"rank\":0,\"ranks\":[0,1]"));
    CHECK(has(answer.facts, "\"operation\":1,\"where\":\"in group 'test'\",\"awaited\":[1],\"held\":1}"));
    CHECK_EQUAL(answer.place, "train.py:5");
    me.group().note(1).address.write(address);
    const auto wait = ask_wait(address, std::chrono::steady_clock::now() + 5s);
    CHECK(wait && wait->rank == 0 && wait->since == me.group().note(0).waits_since.load());
    CHECK(wait->held == Held::thread && wait->where == "in group 'test'");
    CHECK(wait->awaited == std::vector<std::string>({address}));
    std::this_thread::sleep_for(50ms);
    CHECK_EQUAL(asked_of_program.load(), 1);  // by the first question alone
    Inquiries::forget(me.group());
    me.run(make_barrier(me.seat()));
  });
  CHECK(!ask_process("shim-nobody-is-there", std::chrono::steady_clock::now() + 1s).came);
}

SHIM_TEST(how_a_process_ended_is_told) {
  const auto [killed, reaped] = endings_of([] { ::raise(SIGKILL); });
  CHECK_EQUAL(killed, "was killed by SIGKILL (kill -9, or the kernel when memory ran out)");
  CHECK(reaped == killed || reaped.empty());  // Linux before 6.15 tells the parent alone
  const auto [exited, reaped_too] = endings_of([] { ::_exit(3); });
  CHECK_EQUAL(exited, "exited with status 3");
  CHECK(reaped_too == exited || reaped_too.empty());
}
