// What the fake driver has for other processes: memory that they open. A handle names the file that keeps it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>

#include "driver.hpp"
#include "fake_cuda.hpp"
#include "processes.hpp"

struct IpcHandle {
  int process, file, device;
  std::size_t bytes;
  char unused[64 - 3 * sizeof(int) - 4 - sizeof(std::size_t)];
};
static_assert(sizeof(IpcHandle) == 64);

namespace fake {
namespace {

constexpr int most_openers = 64, peer_access = 1;

// In the page behind memory: the processes that have it open.
std::atomic<int>* openers_of(const Allocation& memory) {
  return reinterpret_cast<std::atomic<int>*>(memory.alias + memory.guard_at());
}

int replace_opener(const Allocation& memory, int from, int to) {
  for (int i = 0; i < most_openers; ++i)
    if (int there = from; openers_of(memory)[i].compare_exchange_strong(there, to)) return success;
  return out_of_memory;
}

int opened_file(const IpcHandle& handle) {
  if (handle.process == getpid()) wrong_use("cuIpcOpen", "what this process has made itself");
  const std::string path = "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
  return open(path.c_str(), O_RDWR);
}

}  // namespace

std::uintptr_t map_memory(Allocation memory, int file) {
  void* const hidden = mmap(nullptr, memory.whole(), PROT_NONE, MAP_SHARED, file, 0);
  void* const alias = mmap(nullptr, memory.whole(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (hidden == MAP_FAILED || alias == MAP_FAILED) return 0;
  memory.alias = static_cast<std::byte*>(alias);
  const std::lock_guard lock(driver().mutex);
  driver().allocations[reinterpret_cast<std::uintptr_t>(hidden)] = memory;
  return reinterpret_cast<std::uintptr_t>(hidden);
}

void unmap_memory(std::uintptr_t address, const Allocation& memory) {
  munmap(reinterpret_cast<void*>(address), memory.whole());
  munmap(memory.alias, memory.whole());
}

void check_nobody_has_open(const char* function, const Allocation& memory) {
  for (int i = 0; i < most_openers; ++i)
    if (const int process = openers_of(memory)[i]; process != 0 && is_alive(process))
      wrong_use(function, "memory that another process has open");
}

}  // namespace fake

using namespace fake;

extern "C" {

int cuIpcGetMemHandle(IpcHandle* handle, std::uintptr_t address) {
  const std::lock_guard lock(driver().mutex);
  const auto found = driver().allocations.find(address);
  if (found == driver().allocations.end()) wrong_use("cuIpcGetMemHandle", "memory that was not allocated");
  const Allocation& memory = found->second;
  if (memory.is_pooled) wrong_use("cuIpcGetMemHandle", "memory of cuMemAllocAsync");
  *handle = {static_cast<int>(getpid()), memory.file, memory.device, memory.bytes, {}};
  return success;
}

int cuIpcOpenMemHandle_v2(std::uintptr_t* address, IpcHandle handle, unsigned flags) {
  if (flags != peer_access) return invalid_value;
  current_device("cuIpcOpenMemHandle");
  const int file = opened_file(handle);
  if (file < 0) return invalid_value;
  *address = map_memory({handle.bytes, nullptr, handle.device, 0, false}, file);
  close(file);
  const std::lock_guard lock(driver().mutex);
  return *address == 0 ? out_of_memory : replace_opener(driver().allocations[*address], 0, static_cast<int>(getpid()));
}

int cuIpcCloseMemHandle(std::uintptr_t address) {
  const std::lock_guard lock(driver().mutex);
  const auto found = driver().allocations.find(address);
  if (found == driver().allocations.end() || found->second.file != 0)
    wrong_use("cuIpcCloseMemHandle", "memory that was not opened");
  replace_opener(found->second, static_cast<int>(getpid()), 0);
  unmap_memory(address, found->second);
  driver().allocations.erase(found);
  return success;
}

}  // extern "C"
