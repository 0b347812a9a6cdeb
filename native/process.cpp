#include "process.hpp"

#include <pthread.h>

#include <atomic>

namespace shim {
namespace {

std::atomic<std::uint64_t> generation{1};

void forked() { generation.fetch_add(1, std::memory_order_relaxed); }

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, forked);

}  // namespace

std::uint64_t process_generation() { return generation.load(std::memory_order_relaxed); }

}  // namespace shim
