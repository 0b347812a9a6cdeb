#include "machine/measuring.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "machine/caches.hpp"
#include "machine/copies.hpp"
#include "machine/prefetch.hpp"
#include "platform/pause.hpp"
#include "platform/process.hpp"

namespace shim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto patience = std::chrono::milliseconds(2);  // for the other thread
constexpr int batches = 9;
constexpr std::uint64_t trips = 24;  // of a line, there and back, in a batch
constexpr int copies = 15;
constexpr std::size_t copied = 64 * 1024;  // bytes; with its source in any second cache
constexpr int cross_copies = 7;
constexpr std::size_t cross_copied = 256 * 1024;  // bytes; in pages of the usual size
constexpr int rewrites = 15;
constexpr std::size_t rewritten = 32 * 1024;  // bytes; more than a first cache has room for beside their source

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// Of an odd number. The median, because a thread that is kept from running makes few of them very long.
template <std::size_t count>
double median_of(std::array<double, count> times) {
  std::nth_element(times.begin(), times.begin() + count / 2, times.end());
  return times[count / 2];
}

// The kernel's list of processors that share a core: "0,64" or "0-1".
bool are_siblings(int processor, int other) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/thread_siblings_list");
  int first = 0;
  while (file >> first) {
    int last = first;
    if (file.peek() == '-') file.ignore() >> last;
    if (first <= other && other <= last) return true;
    file.ignore();  // the comma
  }
  return false;
}

// One that this thread may run on, of another core than the one it runs on; -1 when there is none.
int another_processor() {
  cpu_set_t usable;
  const int here = ::sched_getcpu();
  if (here < 0 || ::sched_getaffinity(0, sizeof(usable), &usable) != 0) return -1;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor)
    if (processor != here && CPU_ISSET(processor, &usable) && !are_siblings(here, processor)) return processor;
  return -1;
}

// Two lines that go back and forth between two threads, each written by one of them; and a piece of memory that the one
// writes and the other reads.
class LineTrips {
 public:
  // What the other thread does, until the end.
  void answer() {
    std::vector<std::byte> read(rewritten);
    for (std::uint64_t seen = 0; seen != end_of_trips; pause_processor()) {
      const std::uint64_t sent = there_.number.load(std::memory_order_acquire);
      if (sent == seen) continue;
      if (reads_) copy_bytes(read.data(), piece_.data(), rewritten);
      if (claims_) claim_lines(piece_.data(), rewritten);
      back_.number.store(seen = sent, std::memory_order_release);
    }
  }
  void end() { there_.number.store(end_of_trips); }

  // Nanoseconds of one way; nothing when the other thread does not run.
  std::optional<double> way() {
    const Clock::time_point begin = Clock::now();
    if (!go(begin)) return std::nullopt;
    std::array<double, batches> times{};
    for (double& time : times) {
      const Clock::time_point start = Clock::now();
      for (std::uint64_t trip = 0; trip < trips; ++trip)
        if (!go(begin)) return std::nullopt;
      time = ns_since(start) / (2 * trips);
    }
    return median_of(times);
  }

  // Nanoseconds to write the piece anew, which the other thread has read, and then claimed or not. Likewise.
  std::optional<double> rewrite(bool claims) {
    const Clock::time_point begin = Clock::now();
    const std::vector<std::byte> from(rewritten);
    reads_ = true;
    claims_ = claims;
    copy_bytes(piece_.data(), from.data(), rewritten);
    std::array<double, rewrites> times{};
    for (double& time : times) {
      if (!go(begin)) return std::nullopt;
      const Clock::time_point start = Clock::now();
      copy_bytes(piece_.data(), from.data(), rewritten);
      std::atomic_thread_fence(std::memory_order_seq_cst);  // until all of it is written
      time = ns_since(start);
    }
    return median_of(times);
  }

 private:
  static constexpr std::uint64_t end_of_trips = ~std::uint64_t{0};
  struct alignas(line_bytes) Line {
    std::atomic<std::uint64_t> number{0};
  };

  // There and back, once.
  bool go(Clock::time_point begin) {
    there_.number.store(++sent_, std::memory_order_release);
    for (unsigned look = 1; back_.number.load(std::memory_order_acquire) != sent_; ++look) {
      pause_processor();
      if (look % 256 == 0 && Clock::now() > begin + patience) return false;
    }
    return true;
  }

  Line there_;
  Line back_;
  // Written by the one before it sends.
  bool reads_ = false;
  bool claims_ = false;
  std::vector<std::byte> piece_ = std::vector<std::byte>(rewritten);
  std::uint64_t sent_ = 0;
};

// Runs on one processor from its beginning; one that this thread keeps for itself could not move away from it.
class Answering {
 public:
  Answering(LineTrips& lines, int processor) : lines_(lines) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor, &only);
    pthread_attr_t attributes;
    if (::pthread_attr_init(&attributes) != 0) return;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the threads of the program
    is_running_ = ::pthread_attr_setaffinity_np(&attributes, sizeof(only), &only) == 0 &&
                  ::pthread_create(&thread_, &attributes, run, &lines) == 0;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::pthread_attr_destroy(&attributes);
  }
  ~Answering() {
    lines_.end();
    if (is_running_) ::pthread_join(thread_, nullptr);
  }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

  bool is_running() const { return is_running_; }

 private:
  static void* run(void* lines) {
    static_cast<LineTrips*>(lines)->answer();
    return nullptr;
  }

  LineTrips& lines_;
  pthread_t thread_{};
  bool is_running_ = false;
};

struct BetweenProcessors {
  double line_ns;
  double rewrite_ns;  // 0 where the other thread was held up, as with
  double claimed_rewrite_ns;
};

std::optional<BetweenProcessors> between_processors() {
  const int other = another_processor();
  if (other < 0) return std::nullopt;
  LineTrips lines;
  const Answering answering(lines, other);
  if (!answering.is_running()) return std::nullopt;
  // What was not answered may still be read: nothing more is asked then.
  const std::optional<double> way = lines.way();
  if (!way) return std::nullopt;
  const std::optional<double> rewrite = lines.rewrite(false);
  const std::optional<double> claimed = rewrite ? lines.rewrite(true) : std::nullopt;
  return BetweenProcessors{*way, claimed ? *rewrite : 0, claimed.value_or(0)};
}

// Bytes per microsecond; 0 where `copy` says that it cannot.
template <std::size_t count, class Copy>
std::uint64_t speed_of(std::size_t bytes, const Copy& copy) {
  std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes);
  if (!copy(to.data(), from.data())) return 0;
  std::array<double, count> times{};
  for (double& time : times) {
    const Clock::time_point start = Clock::now();
    copy(to.data(), from.data());
    time = ns_since(start);
  }
  return static_cast<std::uint64_t>(1e3 * static_cast<double>(bytes) / median_of(times));
}

std::uint64_t copy_speed() {
  return speed_of<copies>(copied, [](std::byte* to, const std::byte* from) {
    copy_bytes(to, from, copied);
    return true;
  });
}

// Within this process, which it may always do if any may.
std::uint64_t cross_speed() {
  return speed_of<cross_copies>(cross_copied, [self = ::getpid()](std::byte* to, std::byte* from) {
    return read_memory(self, reinterpret_cast<std::uintptr_t>(from), to, cross_copied);
  });
}

}  // namespace

std::optional<Speeds> measure_speeds() {
  const std::optional<BetweenProcessors> between = between_processors();
  if (!between) return std::nullopt;
  Speeds speeds{static_cast<std::uint64_t>(between->line_ns), copy_speed(), cross_speed(),
                static_cast<std::uint64_t>(between->rewrite_ns),
                static_cast<std::uint64_t>(between->claimed_rewrite_ns)};
  if (!are_plausible(speeds)) {  // those of rewriting depend most on what else runs
    speeds.rewrite_ns = usual_speeds.rewrite_ns;
    speeds.claimed_rewrite_ns = usual_speeds.claimed_rewrite_ns;
  }
  return are_plausible(speeds) ? std::optional(speeds) : std::nullopt;
}

}  // namespace shim
