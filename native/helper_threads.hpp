// Threads that share large pieces of work with the one that carries out an operation.
//
// They are the process's, and there are none unless they were asked for. The first large piece of work begins them; a
// forked child has none of its parent's and begins its own. Work is cut where results do not change by a bit.
#pragma once

#include <atomic>
#include <cstddef>

namespace shim {

inline constexpr int most_helper_threads = 64;

// How many helpers this process is to have, 0 at first, and how many it has, or will have when there is work for them:
// fewer where the system gave no more threads since they were asked for. Any thread may call these. Throws
// Failure(argument) for a number that cannot be.
void set_helper_threads(int count);
int helper_threads();

inline constexpr std::size_t shared_from = 64 * 1024;  // bytes read; below, all is done by the thread itself
inline constexpr std::size_t least_share = 32 * 1024;  // bytes read by a thread at a time
inline constexpr std::size_t share_unit = 8 * 1024;    // whole blocks of the reduction kernels for every dtype

// Some work on consecutive bytes: do_part(context, begin, end) does what is to be done from `begin` to `end`.
struct SharedWork {
  void (*do_part)(const void* context, std::size_t begin, std::size_t end);
  const void* context;
  std::size_t bytes;
  std::size_t reads;  // bytes read for each of them
};

// Does all of it, together with the helpers that are free, and returns when it is done.
void do_with_helpers(const SharedWork& work);

extern std::atomic<int> wanted_helper_threads;  // for share() alone

// Calls work(begin, end) for parts that make up [0, bytes), on this thread and, where it is much, on helpers at the
// same time. They begin at multiples of share_unit. `work` must not throw, nor wait for anything.
template <class Work>
void share(std::size_t bytes, std::size_t reads, const Work& work) {
  if (bytes * reads < shared_from || wanted_helper_threads.load(std::memory_order_relaxed) == 0) return work(0, bytes);
  const auto do_part = [](const void* context, std::size_t begin, std::size_t end) {
    (*static_cast<const Work*>(context))(begin, end);
  };
  do_with_helpers({do_part, &work, bytes, reads});
}

}  // namespace shim
