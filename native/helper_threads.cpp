#include "helper_threads.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>

#include "copies.hpp"
#include "failure.hpp"
#include "float_control.hpp"
#include "group.hpp"
#include "process.hpp"
#include "threads.hpp"

namespace shim {

std::atomic<int> wanted_helper_threads{0};

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t parts_of_a_thread = 4;                // so that one that comes late, or is slow, holds nobody up
constexpr int polls = 64;                                   // between two looks at the clock
constexpr auto awake_for = std::chrono::microseconds(100);  // after the last work: several pieces of an operation
constexpr int yields = 16;                                  // before the thread of an operation sleeps

// To wake a helper costs a few microseconds, and it comes when a small operation is over. So those that sleep are woken
// when so many bytes have been read by pieces that followed each other.
constexpr std::size_t bytes_to_wake = 1024 * 1024;
constexpr auto followed = std::chrono::microseconds(500);

// What is left to take of a job, in one word: who has changed it has a part, and the job stays until that is done.
class Takings {
 public:
  explicit Takings(std::uint64_t word) : word_(word) {}
  Takings(std::uint64_t job, unsigned helpers, std::uint64_t parts) : word_(job << 32 | helpers << 24 | parts << 12) {}

  std::uint64_t word() const { return word_; }
  std::uint64_t job() const { return word_ >> 32; }
  int helpers() const { return static_cast<int>(word_ >> 24 & 0xff); }
  std::size_t parts() const { return word_ >> 12 & 0xfff; }
  std::size_t next() const { return word_ & 0xfff; }
  Takings after_next() const { return Takings(word_ + 1); }

 private:
  std::uint64_t word_;
};

static_assert((most_helper_threads + 1) * parts_of_a_thread < 0xfff);

std::size_t part_bytes(const SharedWork& work, int helpers) {
  const std::size_t many = static_cast<std::size_t>(helpers + 1) * parts_of_a_thread;
  const std::size_t bytes = std::max((work.bytes + many - 1) / many, least_share / work.reads);
  return (bytes + share_unit - 1) / share_unit * share_unit;
}

class Pool {
 public:
  // False where they are busy, or asleep and better left alone: then nothing was done.
  bool carry_out(const SharedWork& work, int wanted);
  // To begin threads, where that has failed.
  void try_again() { most_.store(most_helper_threads); }
  // How many of `wanted` helpers there are or, before they began, may be.
  int available(int wanted) const { return std::min(wanted, most_.load()); }

  const std::uint64_t generation = process_generation();

 private:
  void begin_missing(int wanted);
  bool is_worth_waking(std::size_t bytes);
  void publish(const SharedWork& work, int helpers, bool wakes);
  bool do_next_part(int helper);
  void wait_until_done();
  void help(int helper);
  bool is_called_soon(std::uint32_t calls) const;

  std::atomic<bool> busy_{false};  // some thread has the helpers; what follows is its own
  int begun_ = 0;
  std::size_t bytes_in_a_row_ = 0;
  Clock::time_point last_time_{};
  std::uint32_t jobs_ = 0;

  std::atomic<int> most_{most_helper_threads};
  SharedWork work_{};  // of the job, as what follows; those read it who have a part
  std::size_t part_bytes_ = 0;
  FloatControl floats_ = FloatControl::of_this_thread();

  alignas(128) std::atomic<std::uint64_t> takings_{0};
  alignas(128) std::atomic<std::uint32_t> done_{0};   // parts of the job
  alignas(128) std::atomic<std::uint32_t> calls_{0};  // jobs so far; helpers sleep on it
  std::atomic<int> sleepers_{0};
};

bool Pool::carry_out(const SharedWork& work, int wanted) {
  if (busy_.exchange(true, std::memory_order_acquire)) return false;
  begin_missing(wanted);
  const int helpers = available(wanted);
  const bool wakes = is_worth_waking(work.bytes * work.reads);
  const bool is_shared = helpers > 0 && (wakes || sleepers_.load() < begun_);
  if (is_shared) {
    publish(work, helpers, wakes);
    while (do_next_part(-1)) continue;
    wait_until_done();
  }
  busy_.store(false, std::memory_order_release);
  return is_shared;
}

void Pool::begin_missing(int wanted) {
  while (begun_ < available(wanted)) {
    try {
      begin_thread([this, helper = begun_] { help(helper); }).detach();
      ++begun_;
    } catch (const std::exception&) {  // the work is done without
      most_.store(begun_);
    }
  }
}

bool Pool::is_worth_waking(std::size_t bytes) {
  const Clock::time_point now = Clock::now();
  bytes_in_a_row_ = (now - last_time_ < followed ? bytes_in_a_row_ : 0) + bytes;
  last_time_ = now;
  return bytes_in_a_row_ >= bytes_to_wake;
}

void Pool::publish(const SharedWork& work, int helpers, bool wakes) {
  work_ = work;
  part_bytes_ = part_bytes(work, helpers);
  floats_ = FloatControl::of_this_thread();
  done_.store(0);
  const std::size_t parts = (work.bytes + part_bytes_ - 1) / part_bytes_;
  takings_.store(Takings(++jobs_, static_cast<unsigned>(helpers), parts).word());
  calls_.fetch_add(1);
  if (wakes && sleepers_.load() > 0) calls_.notify_all();
}

bool Pool::do_next_part(int helper) {
  std::uint64_t word = takings_.load();
  for (;;) {
    const Takings takings(word);
    if (takings.next() >= takings.parts() || helper >= takings.helpers()) return false;
    if (!takings_.compare_exchange_weak(word, takings.after_next().word())) continue;
    const std::size_t begin = takings.next() * part_bytes_;
    const bool is_helper = helper >= 0;
    if (is_helper) floats_.apply();
    work_.do_part(work_.context, begin, std::min(begin + part_bytes_, work_.bytes));
    if (is_helper) finish_streaming();
    if (done_.fetch_add(1) + 1 == takings.parts()) done_.notify_one();
    return true;
  }
}

void Pool::wait_until_done() {
  const std::size_t parts = Takings(takings_.load()).parts();
  for (int yielded = 0;;) {
    const std::uint32_t done = done_.load();
    if (done == parts) return;
    for (int poll = 0; poll < polls && done_.load() != parts; ++poll) pause_processor();
    if (++yielded <= yields)
      ::sched_yield();
    else
      done_.wait(done);
  }
}

void Pool::help(int helper) {
  for (;;) {
    const std::uint32_t calls = calls_.load();
    while (do_next_part(helper)) continue;
    if (is_called_soon(calls)) continue;
    sleepers_.fetch_add(1);
    calls_.wait(calls);
    sleepers_.fetch_sub(1);
  }
}

bool Pool::is_called_soon(std::uint32_t calls) const {
  const Clock::time_point until = Clock::now() + awake_for;
  do {
    for (int poll = 0; poll < polls; ++poll) {
      if (calls_.load() != calls) return true;
      pause_processor();
    }
    ::sched_yield();  // whoever else would run here has more to do
  } while (Clock::now() < until);
  return false;
}

std::atomic<Pool*> pool_of_process{nullptr};

// Null before the first one is made; never destroyed, as its threads outlive main().
Pool* known_pool() {
  Pool* pool = pool_of_process.load();
  return pool != nullptr && pool->generation == process_generation() ? pool : nullptr;
}

Pool& pool() {
  if (Pool* known = known_pool()) return *known;
  Pool* before = pool_of_process.load();
  auto* made = new Pool();
  if (pool_of_process.compare_exchange_strong(before, made)) return *made;
  delete made;
  return *before;
}

}  // namespace

void set_helper_threads(int count) {
  if (count < 0 || count > most_helper_threads)
    throw Failure(FailureKind::argument, "there can be 0 to " + std::to_string(most_helper_threads) +
                                             " helper threads, got " + std::to_string(count));
  wanted_helper_threads.store(count);
  if (Pool* known = known_pool()) known->try_again();
}

int helper_threads() {
  const int wanted = wanted_helper_threads.load();
  const Pool* known = known_pool();
  return known != nullptr ? known->available(wanted) : wanted;
}

void do_with_helpers(const SharedWork& work) {
  const int wanted = wanted_helper_threads.load();
  const bool is_one_part = work.bytes <= part_bytes(work, wanted);
  if (is_one_part || !pool().carry_out(work, wanted)) work.do_part(work.context, 0, work.bytes);
}

}  // namespace shim
