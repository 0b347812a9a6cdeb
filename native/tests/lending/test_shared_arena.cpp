// Memory for many tensors in few files: what is used again and when, and what is not.
#include "lending/shared_arena.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

#include "tests/floats.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

SharedArena& arena = SharedArena::instance();
constexpr std::size_t page = SharedArena::page;
constexpr std::size_t file = std::size_t{8} << 20;  // bytes of the first

void check_usage(std::size_t allocated, std::size_t reserved, std::size_t files) {
  const SharedArena::Usage usage = arena.usage();
  CHECK_EQUAL(usage.allocated, allocated);
  CHECK_EQUAL(usage.reserved, reserved);
  CHECK_EQUAL(usage.files, files);
}

// Interrupts the first wait that is long enough.
struct GivingUp final : WaitHooks {
  void about_to_block() override {}
  void check_interrupted() override { throw Interrupted(); }
};

TensorArgument floats_at(std::string_view role, void* data, std::size_t count) {
  TensorView view;
  view.data = static_cast<std::byte*>(data);
  view.dtype = Dtype::float32;
  view.dimensions = 1;
  view.shape[0] = static_cast<std::int64_t>(count);
  view.strides[0] = 1;
  return {role, view, {}, false};
}

}  // namespace

SHIM_TEST(freed_ranges_are_joined_and_used_again) {
  auto* const first = static_cast<std::byte*>(arena.allocate(1));
  auto* const second = static_cast<std::byte*>(arena.allocate(page + 1));
  auto* const third = static_cast<std::byte*>(arena.allocate(page));
  auto* const last = static_cast<std::byte*>(arena.allocate(page));
  CHECK_EQUAL(second - first, static_cast<std::ptrdiff_t>(page));
  CHECK_EQUAL(third - second, static_cast<std::ptrdiff_t>(2 * page));
  CHECK_EQUAL(arena.bytes_at(second), 2 * page);
  CHECK_EQUAL(arena.bytes_at(second + page), std::size_t{0});
  check_usage(5 * page, file, 1);
  CHECK(!arena.release(second + page));
  CHECK(arena.release(first));
  CHECK(!arena.release(first));
  CHECK(arena.release(third));
  CHECK(arena.release(second));
  CHECK(arena.allocate(4 * page) == first);  // the smallest gap in which it has room
  CHECK(arena.release(last));
  check_usage(4 * page, file, 1);
  CHECK(arena.release(first));
  check_usage(0, 0, 0);
}

SHIM_TEST(files_grow_and_are_given_back) {
  arena.keep_empty();
  void* const small = arena.allocate(file);
  void* const large = arena.allocate(10 * file);
  check_usage(11 * file, 11 * file, 2);
  void* const next = arena.allocate(1);  // in a file as large as those before it, up to a limit
  check_usage(11 * file + page, 19 * file, 3);
  for (void* data : {small, large, next}) CHECK(arena.release(data));
  check_usage(0, 19 * file, 3);
  void* const again = arena.allocate(9 * file);
  CHECK(again == large);
  CHECK(arena.release(again));
  void* const larger = arena.allocate(11 * file);  // what is empty makes room
  check_usage(11 * file, 11 * file, 1);
  CHECK(arena.release(larger));
  arena.return_empty();
  check_usage(0, 0, 0);
}

SHIM_TEST(what_is_not_there_is_not_allocated) {
  CHECK(arena.allocate(0) == nullptr);
  for (const int bits : {50, 62, 63}) CHECK(arena.allocate(std::size_t{1} << bits) == nullptr);
  CHECK(arena.allocate(~std::size_t{0}) == nullptr);
  int here = 0;
  for (const void* other : {static_cast<const void*>(&here), static_cast<const void*>(nullptr)}) {
    CHECK(!arena.release(other));
    CHECK_EQUAL(arena.bytes_at(other), std::size_t{0});
  }
  check_usage(0, 0, 0);
}

SHIM_TEST(threads_allocate_and_free_at_once) {
  std::vector<std::thread> threads;
  std::atomic<bool> is_wrong{false};
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([seed, &is_wrong] {
      std::mt19937 random(seed);
      std::vector<std::pair<std::uint32_t*, std::uint32_t>> kept;
      for (std::uint32_t turn = 0; turn < 2000; ++turn) {
        auto* const data = static_cast<std::uint32_t*>(arena.allocate((1 + random() % 64) * page));
        *data = seed * 10'000 + turn;
        kept.emplace_back(data, *data);
        const std::size_t which = random() % kept.size();
        if (kept.size() < 30) continue;
        if (*kept[which].first != kept[which].second || !arena.release(kept[which].first)) is_wrong = true;
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(which));
      }
      for (const auto& [data, value] : kept)
        if (*data != value || !arena.release(data)) is_wrong = true;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(!is_wrong);
  check_usage(0, 0, 0);
}

SHIM_TEST(forks_leave_each_process_what_it_had) {
  arena.keep_empty();
  auto* const before = static_cast<char*>(arena.allocate(page));
  void* const freed = arena.allocate(page);
  *before = 'p';
  const pid_t child = ::fork();
  if (child == 0) {
    *before = 'c';
    arena.release(freed);
    void* const fresh = arena.allocate(page);
    const bool is_fresh = fresh != nullptr && fresh != freed && *before == 'c';
    const bool is_given_back = arena.release(before) && arena.usage().files == 1 && arena.release(fresh);
    ::_exit(is_fresh && is_given_back ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK_EQUAL(status, 0);
  CHECK_EQUAL(*before, 'p');
  CHECK(arena.release(freed));
  void* const after = arena.allocate(page);  // the child might still have read what was freed
  check_usage(2 * page, 2 * file, 2);
  CHECK(arena.release(before));
  check_usage(page, file, 1);
  CHECK(arena.release(after));
  arena.return_empty();
  check_usage(0, 0, 0);
}

SHIM_TEST(what_an_operation_that_was_given_up_has_lent_is_not_used_again) {
  constexpr std::size_t count = 10'000;
  arena.keep_empty();
  for (const bool is_given_up : {false, true}) {
    void* const tensor = arena.allocate(count * sizeof(float));  // of both ranks, which are threads
    void* const other = arena.allocate(page);
    on_ranks(2, [&](Rank& me) {
      Floats output(2 * count, true, 100);
      const auto gather = [&] {
        return make_all_gather(me.seat(), output.as("output"), floats_at("input", tensor, count),
                               no_splits("output_splits"));
      };
      me.run(gather());
      CHECK(was_direct(me));
      if (!is_given_up || me.rank() == 1) return;
      GivingUp hooks;
      const WaitHooksScope scope(hooks);
      try {
        me.run(gather());
        throw std::runtime_error("not interrupted");
      } catch (const Interrupted&) {
      }
    });
    CHECK(arena.release(tensor));
    void* const next = arena.allocate(page);
    CHECK_EQUAL(next == tensor, !is_given_up);
    for (void* data : {next, other}) CHECK(arena.release(data));
  }
  arena.return_empty();
  check_usage(0, 0, 0);
}
