#include "lending/shared_allocation.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "platform/failure.hpp"
#include "platform/process.hpp"

namespace shim {
namespace {

struct Known {
  SharedPlace place;
  const std::byte* end;
  SharedAllocation* owner;
};

// The allocations of one process. Those of its parent are none of a forked child's: it has the memory, but their
// numbers, and what the parent has said of them, are not its own.
struct Allocations {
  std::mutex mutex;
  std::map<const std::byte*, Known> by_address;
  std::vector<LenderOfAllocations*> lenders;
  std::atomic<bool> any{false};
  std::uint64_t last_number = 0;
};

Allocations& allocations() {
  static std::mutex mutex;
  static Allocations* instance = nullptr;  // never destroyed: tensors may outlive everything else
  static std::atomic<std::uint64_t> generation{0};
  if (generation.load(std::memory_order_acquire) != process_generation()) {
    const std::lock_guard lock(mutex);
    if (generation.load() != process_generation()) {
      instance = new Allocations();
      generation.store(process_generation(), std::memory_order_release);
    }
  }
  return *instance;
}

// What the machine can still give; everything where it does not say.
std::size_t available_bytes() {
  std::ifstream facts("/proc/meminfo");
  for (std::string line; std::getline(facts, line);)
    if (line.rfind("MemAvailable:", 0) == 0) return std::strtoull(line.c_str() + 13, nullptr, 10) * 1024;
  return ~std::size_t{0};
}

// Reserving more than there is would not fail: the kernel would look for a process to kill.
std::size_t checked(std::size_t bytes) {
  if (bytes <= available_bytes()) return bytes;
  throw Failure(FailureKind::memory, "cannot reserve " + std::to_string(bytes) +
                                         " bytes of shared memory: the machine has not as much left");
}

}  // namespace

SharedAllocation::SharedAllocation(std::size_t bytes)
    : segment_(Segment::create(checked(bytes), Inheritance::by_children)), generation_(process_generation()) {
  segment_.populate();
  struct stat status{};
  ::fstat(segment_.file(), &status);
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  number_ = ++all.last_number;
  const SharedPlace place{number_, 0, segment_.size(), status.st_ino, segment_.file()};
  all.by_address.emplace(segment_.data(), Known{place, segment_.data() + segment_.size(), this});
  all.any.store(true);
}

SharedAllocation::~SharedAllocation() {
  if (generation_ != process_generation()) return;
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  all.by_address.erase(segment_.data());
  all.any.store(!all.by_address.empty());
  for (LenderOfAllocations* lender : all.lenders) lender->allocation_is_freed(number_);
}

std::optional<SharedPlace> SharedAllocation::find(const std::byte* data, std::size_t bytes) {
  Allocations& all = allocations();
  if (!all.any.load(std::memory_order_relaxed)) return std::nullopt;
  const std::lock_guard lock(all.mutex);
  auto next = all.by_address.upper_bound(data);
  if (next == all.by_address.begin()) return std::nullopt;
  const auto& [start, known] = *std::prev(next);
  if (data >= known.end || bytes > static_cast<std::size_t>(known.end - data)) return std::nullopt;
  SharedPlace place = known.place;
  place.offset = static_cast<std::size_t>(data - start);
  return place;
}

void SharedAllocation::give_up(std::uint64_t number) {
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  for (const auto& [start, known] : all.by_address)
    if (known.place.allocation == number) known.owner->is_given_up_.store(true);
}

void SharedAllocation::add_lender(LenderOfAllocations& lender) {
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  all.lenders.push_back(&lender);
}

void SharedAllocation::remove_lender(LenderOfAllocations& lender) {
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  std::erase(all.lenders, &lender);
}

}  // namespace shim
