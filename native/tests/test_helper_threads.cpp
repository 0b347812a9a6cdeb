// Helpers do each part of shared work once, beside the thread whose work it is and as it would have done it.
#include "../helper_threads.hpp"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "../float_control.hpp"
#include "check.hpp"
#include "no_threads.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

constexpr std::size_t large = 4 * 1024 * 1024;  // bytes, for which helpers are woken

class Helpers {
 public:
  explicit Helpers(int count) { set_helper_threads(count); }
  ~Helpers() { set_helper_threads(0); }
};

// Has each part wait until so many threads are at one, and calls at_part() in each.
template <class AtPart>
void meet(int threads, const AtPart& at_part) {
  std::mutex mutex;
  std::set<std::thread::id> there;
  share(large, 1, [&](std::size_t, std::size_t) {
    at_part();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    for (bool waits = true; waits && std::chrono::steady_clock::now() < until; std::this_thread::yield()) {
      const std::lock_guard lock(mutex);
      there.insert(std::this_thread::get_id());
      waits = there.size() < static_cast<std::size_t>(threads);
    }
  });
  CHECK_EQUAL(there.size(), static_cast<std::size_t>(threads));
}

void check_each_byte_is_done_once(std::size_t bytes, std::size_t reads) {
  std::vector<unsigned char> done(bytes);
  std::atomic<bool> cut_well{true};
  share(bytes, reads, [&](std::size_t begin, std::size_t end) {
    if (begin % share_unit != 0 || end > bytes) cut_well = false;
    for (std::size_t i = begin; i < end; ++i) ++done[i];
  });
  CHECK(cut_well);
  CHECK(std::all_of(done.begin(), done.end(), [](unsigned char times) { return times == 1; }));
}

#if defined(__SSE__)

bool flushes_to_zero() {
  volatile float small = std::numeric_limits<float>::min();
  return std::bit_cast<std::uint32_t>(small * 0.5f) == 0;
}

bool takes_subnormals_for_zero() {
  volatile float subnormal = std::numeric_limits<float>::denorm_min();
  return std::bit_cast<std::uint32_t>(subnormal * 0x1p100f) == 0;
}

#endif

}  // namespace

SHIM_TEST(where_no_thread_can_begin_the_work_is_done_without) {
  const Helpers helpers(3);
  CHECK_EQUAL(helper_threads(), 3);
  {
    const NoThreads no_threads;
    check_each_byte_is_done_once(large, 1);
    CHECK_EQUAL(helper_threads(), 0);
    check_each_byte_is_done_once(large, 1);
  }
  CHECK_EQUAL(helper_threads(), 0);
  set_helper_threads(1);  // asked for again
  meet(2, [] {});
  CHECK_EQUAL(helper_threads(), 1);
  set_helper_threads(3);
  const NoThreads no_threads;
  meet(2, [] {});
  CHECK_EQUAL(helper_threads(), 1);
}

SHIM_TEST(all_helpers_take_part) {
  for (const int count : {1, 3, 2}) {
    const Helpers helpers(count);
    meet(count + 1, [] {});
  }
}

SHIM_TEST(helpers_leave_signals_to_the_program) {
  const Helpers helpers(2);
  const auto me = std::this_thread::get_id();
  std::atomic<bool> all_blocked{true};
  meet(3, [&] {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    if (std::this_thread::get_id() != me && sigismember(&now, SIGINT) != 1) all_blocked = false;
  });
  CHECK(all_blocked);
}

SHIM_TEST(each_byte_is_done_once) {
  for (const int count : {0, 1, 3}) {
    const Helpers helpers(count);
    for (const std::size_t reads : {std::size_t{1}, std::size_t{3}, std::size_t{1000}})
      for (const std::size_t whole : {std::size_t{0}, std::size_t{1}, share_unit, least_share, shared_from / 3,
                                      shared_from, 8 * shared_from, large / 4})
        for (const std::size_t bytes : {whole - std::min<std::size_t>(whole, 1), whole, whole + 1})
          check_each_byte_is_done_once(bytes, reads);
  }
}

SHIM_TEST(little_work_is_done_by_the_thread_itself) {
  const Helpers helpers(3);
  for (int i = 0; i < 5; ++i) {
    meet(4, [] {});  // so that none of them sleeps
    std::vector<std::thread::id> by;
    share(shared_from - 1, 1, [&](std::size_t, std::size_t) { by.push_back(std::this_thread::get_id()); });
    CHECK(by == std::vector{std::this_thread::get_id()});
  }
}

SHIM_TEST(threads_that_have_work_at_once_do_not_wait_for_each_other) {
  const Helpers helpers(2);
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&failed] {
      for (int times = 0; times < 50; ++times) {
        std::vector<char> to(300'001);
        share(to.size(), 1, [&](std::size_t begin, std::size_t end) {
          std::fill(to.begin() + static_cast<std::ptrdiff_t>(begin), to.begin() + static_cast<std::ptrdiff_t>(end),
                    'x');
        });
        if (std::count(to.begin(), to.end(), 'x') != 300'001) ++failed;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(failed.load(), 0);
}

SHIM_TEST(work_within_shared_work_is_done) {
  const Helpers helpers(2);
  std::atomic<std::size_t> done{0};
  share(large, 1, [&](std::size_t begin, std::size_t end) {
    share(end - begin, 1, [&](std::size_t from, std::size_t to) { done += to - from; });
  });
  CHECK_EQUAL(done.load(), large);
}

#if defined(__SSE__)
SHIM_TEST(helpers_compute_as_the_thread_whose_work_it_is) {
  const Helpers helpers(3);
  const unsigned before = _mm_getcsr();
  for (const unsigned bits : {0x8040u, 0u, 0x8000u, 0x0040u, 0u, 0x6000u}) {
    _mm_setcsr((before & ~0xe040u) | bits);
    std::atomic<int> others{0};
    meet(4, [&] {
      const bool is_same = flushes_to_zero() == ((bits & 0x8000) != 0) &&
                           takes_subnormals_for_zero() == ((bits & 0x40) != 0) &&
                           (_mm_getcsr() & 0x6000) == (bits & 0x6000);
      if (!is_same) ++others;
    });
    _mm_setcsr(before);
    CHECK_EQUAL(others.load(), 0);
  }
}
#endif
