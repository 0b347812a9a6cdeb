// How the engine's threads begin.
#include "platform/threads.hpp"

#include "tests/check.hpp"
#include "tests/no_threads.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

bool is_blocked(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

}  // namespace

SHIM_TEST(threads_leave_signals_to_the_program) {
  bool interrupt = false;
  bool user = false;
  begin_thread("shim test", [&] {
    interrupt = is_blocked(SIGINT);
    user = is_blocked(SIGUSR1);
  }).join();
  CHECK(interrupt && user);
  CHECK(!is_blocked(SIGINT) && !is_blocked(SIGUSR1));
}

SHIM_TEST(a_thread_that_cannot_begin_is_a_failure_of_the_engine) {
  const NoThreads no_threads;
  std::string said;
  try {
    begin_thread("shim test", [] {}).join();
  } catch (const Failure& failure) {
    CHECK(failure.kind == FailureKind::engine);
    said = failure.what();
  }
  CHECK_EQUAL(said, std::string("cannot begin a thread: Resource temporarily unavailable"));
  CHECK(!is_blocked(SIGINT));
}
