#include "process.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace shim {
namespace {

std::atomic<std::uint64_t> generation{1};

void forked() { generation.fetch_add(1, std::memory_order_relaxed); }

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, forked);

}  // namespace

std::uint64_t process_generation() { return generation.load(std::memory_order_relaxed); }

int usable_processors() {
  cpu_set_t processors;
  if (sched_getaffinity(0, sizeof(processors), &processors) == 0) return std::max(1, CPU_COUNT(&processors));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace shim
