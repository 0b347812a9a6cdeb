// Ranks as threads that share one segment, and tensors made of vectors.
#pragma once

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "collectives/collectives.hpp"
#include "meeting/group_memory.hpp"
#include "meeting/rendezvous.hpp"
#include "platform/processors.hpp"
#include "progress/progress.hpp"
#include "tests/check.hpp"

namespace shim::tests {

inline constexpr int world_sizes[] = {1, 2, 3, 4, 7};

template <class T>
constexpr Dtype dtype_of = Dtype::none;
template <>
inline constexpr Dtype dtype_of<std::int64_t> = Dtype::int64;
template <>
inline constexpr Dtype dtype_of<std::int32_t> = Dtype::int32;
template <>
inline constexpr Dtype dtype_of<std::uint8_t> = Dtype::uint8;
template <>
inline constexpr Dtype dtype_of<float> = Dtype::float32;
template <>
inline constexpr Dtype dtype_of<double> = Dtype::float64;

template <class T>
TensorView view_of(std::vector<T>& data, std::vector<std::int64_t> shape = {}) {
  TensorView view;
  if (shape.empty()) shape = {static_cast<std::int64_t>(data.size())};
  view.data = reinterpret_cast<std::byte*>(data.data());
  view.dtype = dtype_of<T>;
  view.dimensions = static_cast<int>(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    view.shape[d] = shape[d];
    view.strides[d] = stride;
  }
  return view;
}

template <class T>
TensorArgument one(std::string_view role, std::vector<T>& data, std::vector<std::int64_t> shape = {}) {
  return {role, view_of(data, std::move(shape)), {}, false};
}

template <class T>
TensorArgument list(std::string_view role, std::vector<std::vector<T>>& parts) {
  TensorArgument argument{role, std::nullopt, {}, true};
  for (auto& part : parts) argument.list.push_back(view_of(part));
  return argument;
}

inline SplitArgument no_splits(std::string_view role) { return {role, std::nullopt}; }

// One rank of a group, in one thread.
class Rank {
 public:
  Rank(int rank, int size, double timeout, std::shared_ptr<Segment> segment, const std::vector<int>& here = {})
      : group_("test", ranks_of(size), rank, timeout, std::move(segment), here), progress_(group_) {}

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  Seat seat() const { return {rank(), size()}; }
  Group& group() { return group_; }
  Progress& progress() { return progress_; }

  void run(std::unique_ptr<Operation> operation) {
    CollectiveTask task(progress_, std::move(operation));
    task.wait(-1);
  }
  std::unique_ptr<CollectiveTask> start(std::unique_ptr<Operation> operation) {
    auto task = std::make_unique<CollectiveTask>(progress_, std::move(operation));
    task->start();
    return task;
  }
  // Runs it and returns the kind of failure; there must be one.
  FailureKind failure_of(std::unique_ptr<Operation> operation) {
    try {
      run(std::move(operation));
    } catch (const Failure& failure) {
      return failure.kind;
    }
    throw std::runtime_error("no failure on rank " + std::to_string(rank()));
  }

 private:
  static std::vector<int> ranks_of(int size) {
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  Group group_;
  Progress progress_;
};

// Those of two ranks on a machine that is as usual but that it is worth claiming there what was read, whatever this one
// is and however many ranks there are.
inline Thresholds usual_thresholds() {
  Speeds speeds = usual_speeds;
  speeds.claimed_rewrite_ns = speeds.rewrite_ns / 4;
  return thresholds_for({speeds, 1024 * 1024, 32 * 1024 * 1024}, 2, 2);
}

inline bool is_crowded_with(int ranks) {
  return are_crowded(std::vector<Processors>(static_cast<std::size_t>(ranks), usable_processors()));
}

inline constexpr Reduction sum{ReduceOp::sum, 1.0};

// An all_reduce of `data` in place.
inline std::unique_ptr<Operation> summing(Rank& me, std::vector<std::int64_t>& data) {
  return make_all_reduce(me.seat(), one("output", data), one("input", data), sum);
}

// Times that make a rank stream its slots for a while.
inline void find_slow(SlotTimes& times) {
  for (int i = 0; i < SlotTimes::enough; ++i) times.add(std::chrono::seconds(1));
  CHECK(times.stream());
}

// What the ranks' counters begin with: SHIM_FIRST_NUMBER, so that they outgrow 32 or 61 bits in the middle of a test.
inline std::uint64_t first_number() {
  const char* const given = std::getenv("SHIM_FIRST_NUMBER");
  return given == nullptr ? 0 : std::stoull(given);
}

inline void begin_with(std::uint64_t number, Rank& rank) {
  Group& group = rank.group();
  rank.progress().messages().begin_with(number);
  group.sequence = group.confirmed = group.steps = group.steps_over = number;
  ProgressLine& line = group.progress(group.rank());
  line.ready = line.made = line.done = number;
}

inline Descriptor process_that_has_ended() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  ::waitpid(child, nullptr, 0);
  return Descriptor(pidfd);
}

// Runs `body` on `size` ranks at once, whose group has this memory, and rethrows the first failure of a rank.
inline void on_ranks_with(const std::shared_ptr<Segment>& segment, int size, const std::function<void(Rank&)>& body,
                          double timeout = 60) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(std::make_unique<Rank>(rank, size, timeout, segment));
  for (const auto& rank : ranks) begin_with(first_number(), *rank);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, i = static_cast<std::size_t>(rank)] {
      try {
        body(*ranks[i]);
      } catch (...) {
        errors[i] = std::current_exception();
        ranks[i]->group().leave();  // the others raise instead of waiting for it
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

inline void on_ranks(int size, const std::function<void(Rank&)>& body, double timeout = 60,
                     const Thresholds& thresholds = usual_thresholds()) {
  on_ranks_with(std::make_shared<Segment>(memory_for(size, thresholds, is_crowded_with(size))), size, body, timeout);
}

}  // namespace shim::tests
