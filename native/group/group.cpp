#include "group/group.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <ctime>
#include <optional>

#include "group/loans.hpp"
#include "group/long_wait.hpp"
#include "platform/process.hpp"

namespace shim {
namespace {

constexpr int quick_polls = 64;
constexpr int spin_polls = 1000;  // about 30 us: less than a futex costs to wake
constexpr int yields = 4;
constexpr long sleep_slice_ns = 50'000'000;  // how late Ctrl-C and deadlines are noticed
constexpr int sleep_across_ms = 20;          // likewise, and what other ranks of this host say meanwhile

thread_local WaitHooks* current_hooks = nullptr;

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { started_operations.store(0); });

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* limit) {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit, nullptr, 0);
}

// Of the calls that are hashed: their kind, counts and shape, or the counts of all ranks.
std::size_t call_words(int ranks) { return 3 + std::max<std::size_t>(max_dimensions, static_cast<std::size_t>(ranks)); }

Thresholds checked(const Thresholds& thresholds, std::size_t slot_bytes) {
  const Thresholds copy = thresholds;  // the other ranks can write to what is checked
  if (are_possible(copy, slot_bytes)) return copy;
  throw Failure(FailureKind::engine, "the group's memory has thresholds that cannot be: rank 0 is not of this version");
}

std::vector<std::unique_ptr<Elsewhere>> elsewhere_of(int ranks, const std::vector<int>& here) {
  std::vector<std::unique_ptr<Elsewhere>> elsewhere(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    if (!here.empty() && std::ranges::find(here, rank) == here.end())
      elsewhere[static_cast<std::size_t>(rank)] = std::make_unique<Elsewhere>();
  return elsewhere;
}

}  // namespace

template <class Words>
std::vector<Words*> Group::words_of(std::size_t (SharedLayout::*place)(int) const, Words Elsewhere::* apart) const {
  std::vector<Words*> words;
  for (int rank = 0; rank < size(); ++rank)
    words.push_back(is_here(rank) ? at<Words>((layout_.*place)(rank)) : &(elsewhere(rank).*apart));
  return words;
}

WaitHooksScope::WaitHooksScope(WaitHooks& hooks) : previous_(current_hooks) { current_hooks = &hooks; }
WaitHooksScope::~WaitHooksScope() { current_hooks = previous_; }
WaitHooks* WaitHooksScope::current() { return current_hooks; }

Group::Group(std::string name, std::vector<int> world_ranks, int rank, double timeout, std::shared_ptr<Segment> segment,
             const std::vector<int>& here)
    : name_(std::move(name)),
      world_ranks_(std::move(world_ranks)),
      rank_(rank),
      timeout_(timeout),
      layout_(static_cast<int>(world_ranks_.size()), here.empty() ? Reach::one_host : Reach::several_hosts),
      segment_(std::move(segment)),
      thresholds_(checked(at<GroupHeader>(layout_.header())->thresholds, layout_.large_slot_bytes())),
      hash_(at<GroupHeader>(layout_.header())->hash_seed, call_words(layout_.size())),
      generation_(process_generation()),
      identity_(random_number()),
      leader_(here.empty() ? 0 : here.front()),
      elsewhere_(elsewhere_of(size(), here)),
      statuses_(words_of(&SharedLayout::status, &Elsewhere::status)),
      notes_(words_of(&SharedLayout::note, &Elsewhere::note)),
      crowd_(statuses_, rank),
      peers_(statuses_, notes_, rank),
      is_crowded_(at<GroupHeader>(layout_.header())->is_crowded != 0),
      quick_polls_(is_crowded_ ? 1 : quick_polls) {
  loans_ = std::make_unique<Loans>(*this, LentFor::operations);
  message_loans_ = std::make_unique<Loans>(*this, LentFor::messages);
  note(rank_).process.store(::getpid());
  note(rank_).processes.store(pid_namespace());
  note(rank_).identity = identity_;
  note(rank_).identity_at = reinterpret_cast<std::uintptr_t>(&identity_);
}

Group::~Group() { leave(); }

bool Group::is_of_this_process() const { return generation_ == process_generation(); }

void Group::check_this_process() const {
  if (!is_of_this_process())
    throw Failure(FailureKind::state,
                  "group '" + name_ +
                      "' was made before this process was forked and belongs to its parent\n"
                      "Initialise in the process that communicates, or start it with the spawn method.");
}

void Group::check_usable() const {
  check_this_process();
  if (failed_.load(std::memory_order_acquire)) throw later_failure();
  if (left_.load(std::memory_order_acquire))
    throw Failure(FailureKind::state, "group '" + name_ + "' has been destroyed");
}

bool Group::reserve_rings() {
  const std::size_t each = ring_slots * layout_.large_slot_bytes();
  if (!has_rings) has_rings = segment_->reserve(layout_.ring(0), static_cast<std::size_t>(size()) * each);
  return has_rings;
}

void Group::ring_bell(int peer) const {
  Doorbell& bell = doorbell(peer);
  if (bell.sleepers.load() == 0) return;
  bell.rings.fetch_add(1);
  if (peer == rank_ && carrier != nullptr) carrier->ring();
  futex(bell.rings, FUTEX_WAKE, INT_MAX, nullptr);
}

void Group::wait_slowly(int peer, const ReadyTest& ready_for, const Describe& what) {
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  const auto deadline = began + std::chrono::duration<double>(timeout_);
  if (WaitHooks* hooks = WaitHooksScope::current()) hooks->about_to_block();
  LongWait long_wait(*this, began, ready_for, what);
  std::optional<CrowdTurns> in_crowd;
  if (is_crowded_) in_crowd.emplace(crowd_);
  const ReadyTest is_awaited = [&ready_for](int rank) { return !ready_for(rank); };
  int polls = carrier == nullptr ? spin_polls : 0;  // a network is slower than a processor that wakes
  int turns = yields;
  while (!ready_for(peer)) {
    BackgroundWork* background = background_.load(std::memory_order_relaxed);
    if (background != nullptr && background->advance()) continue;
    if (in_crowd) {
      if (!in_crowd->take(is_awaited)) sleep_until_rung(peer, ready_for, what);
    } else if (polls > 0) {
      --polls;
      pause_processor();
      if (polls % 64 != 0) continue;
    } else if (turns > 0) {
      if (turns-- == yields) crowd_.spread_out(Clock::now());  // the kernel may have put two ranks on one processor
      ::sched_yield();
    } else {
      sleep_until_rung(peer, ready_for, what);
    }
    check_peers(ready_for, what);
    const auto now = Clock::now();
    // Looked at once more: this process may have been stopped since.
    if (now >= deadline && !ready_for(peer))
      if (const Failure late = long_wait.timeout(); what || withdraw()) fail(late);
    long_wait.go_on(now);
  }
}

void InterruptChecks::check() {
  const auto now = std::chrono::steady_clock::now();
  if (next_ == std::chrono::steady_clock::time_point{}) next_ = now + interval;
  if (now < next_) return;
  next_ = now + interval;
  group_.check_interrupted(false);
}

void Group::check_interrupted(bool in_operation) {
  WaitHooks* hooks = WaitHooksScope::current();
  if (hooks == nullptr) return;
  try {
    hooks->check_interrupted();
  } catch (const Interrupted&) {
    if (in_operation && !withdraw()) return hooks->keep_interrupt();
    give_up_interrupted();
    throw;
  }
}

void Group::give_up_interrupted() {
  record(Failure(FailureKind::engine,
                 "the group was given up when a wait in it was interrupted"
                 "\nThe group can no longer be used."));
}

void Group::sleep_until_rung(int peer, const ReadyTest& ready_for, const Describe& what) {
  check_interrupted(!what);
  struct Asleep {  // while there is one, whoever changes something rings
    explicit Asleep(Doorbell& bell) : bell(bell) { bell.sleepers.fetch_add(1); }
    ~Asleep() { bell.sleepers.fetch_sub(1); }
    Doorbell& bell;
  };
  const Asleep asleep(doorbell(rank_));
  const std::uint32_t rings = asleep.bell.rings.load();
  // What changed before there was a sleeper was not rung for, so everything is looked at once more.
  if (ready_for(peer)) return;
  BackgroundWork* background = background_.load(std::memory_order_relaxed);
  if (background != nullptr && background->advance()) return;
  check_peers(ready_for, what);
  if (carrier != nullptr && carrier->sleep(std::chrono::milliseconds(sleep_across_ms))) return;
  const timespec slice{0, sleep_slice_ns};
  futex(asleep.bell.rings, FUTEX_WAIT, rings, &slice);
}

void Group::check_peers(const ReadyTest& ready_for, const Describe& what) {
  if (left_.load() && !failed_.load() && (what || withdraw()))
    throw Failure(FailureKind::state, "group '" + name_ + "' was destroyed while an operation was under way");
  if (const int missed = peers_.first_missed(ready_for); missed >= 0 && (what || withdraw()))
    fail(lost_failure(missed, what));
}

}  // namespace shim
