#include "fake_cuda.hpp"

#include "driver.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace fake {

Driver& driver() {
  static auto* instance = new Driver();
  return *instance;
}

namespace {

constexpr int release_threshold = 4;
thread_local std::vector<int> contexts;  // the devices of those that were pushed

void* context_of(int device) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(device + 1)); }

}  // namespace

Stream& stream_at(const char* function, void* handle) {
  const std::lock_guard lock(driver().mutex);
  const int device = current_device(function);
  if (handle == nullptr || handle == reinterpret_cast<void*>(1)) {
    if (driver().legacy[device] == nullptr) driver().legacy[device] = new Stream(device, Kind::legacy);
    return *driver().legacy[device];
  }
  if (handle == reinterpret_cast<void*>(2)) {
    static thread_local Stream* own[devices] = {};
    if (own[device] == nullptr) {
      own[device] = new Stream(device, Kind::blocking);
      driver().streams[own[device]] = own[device];
    }
    return *own[device];
  }
  const auto found = driver().streams.find(handle);
  if (found == driver().streams.end()) wrong_use(function, "a stream that is none, or was destroyed");
  return *found->second;
}

std::shared_ptr<Event> event_at(const char* function, void* handle) {
  const std::lock_guard lock(driver().mutex);
  const auto found = driver().events.find(handle);
  if (found == driver().events.end()) wrong_use(function, "an event that is none, or was destroyed");
  return found->second;
}

void wrong_use(const char* function, const char* what) {
  std::fprintf(stderr, "fake device: %s: %s\n", function, what);
  std::fflush(stderr);
  std::abort();
}

std::byte* memory_at(const char* function, const void* address, std::size_t bytes, int device) {
  const std::lock_guard lock(driver().mutex);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto found = driver().allocations.upper_bound(at);
  if (found == driver().allocations.begin()) wrong_use(function, "memory that is not the device's");
  --found;
  if (at - found->first >= found->second.bytes && bytes > 0) wrong_use(function, "memory that is not the device's");
  if (at - found->first + bytes > found->second.bytes) wrong_use(function, "more memory than was allocated");
  if (device >= 0 && found->second.device != device) wrong_use(function, "memory of another device");
  return found->second.alias + (at - found->first);
}

int current_device(const char* function) {
  if (contexts.empty()) wrong_use(function, "no context is current");
  return contexts.back();
}

void free_memory(const char* function, std::uintptr_t address) {
  const std::lock_guard lock(driver().mutex);
  const auto found = driver().allocations.find(address);
  if (found == driver().allocations.end()) wrong_use(function, "memory that was not allocated");
  if (found->second.file == 0) wrong_use(function, "memory of another process");
  check_nobody_has_open(function, found->second);
  close(found->second.file);
  unmap_memory(address, found->second);
  driver().allocations.erase(found);
}

bool put_on_stream(const char* function, void* stream, int device, std::function<void()> work) {
  Stream& there = stream_at(function, stream);
  if (there.device != device) wrong_use(function, "a stream of another device");
  if (there.is_capturing) return false;
  put(there, std::move(work));
  return true;
}

}  // namespace fake

using namespace fake;

extern "C" {

int cuInit(unsigned flags) {
  driver().is_begun = true;
  return flags == 0 ? success : invalid_value;
}

int cuDeviceGetCount(int* count) {
  if (!driver().is_begun) wrong_use("cuDeviceGetCount", "cuInit was not called");
  *count = devices;
  return success;
}

int cuDeviceGet(int* device, int ordinal) {
  if (!driver().is_begun) wrong_use("cuDeviceGet", "cuInit was not called");
  if (ordinal < 0 || ordinal >= devices) return invalid_device;
  *device = ordinal;
  return success;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = context_of(device);
  return success;
}

int cuCtxPushCurrent_v2(void* context) {
  contexts.push_back(static_cast<int>(reinterpret_cast<std::intptr_t>(context)) - 1);
  return success;
}

int cuCtxPopCurrent_v2(void** context) {
  if (contexts.empty()) wrong_use("cuCtxPopCurrent", "no context is current");
  *context = context_of(contexts.back());
  contexts.pop_back();
  return success;
}

int cuCtxGetCurrent(void** context) {
  *context = contexts.empty() ? nullptr : context_of(contexts.back());
  return success;
}

int cuCtxSynchronize() {
  const int device = current_device("cuCtxSynchronize");
  if (const int error = check_capture()) return error;
  std::vector<Stream*> there;
  {
    const std::lock_guard lock(driver().mutex);
    for (const auto& [_, stream] : driver().streams)
      if (stream->device == device) there.push_back(stream);
    if (driver().legacy[device] != nullptr) there.push_back(driver().legacy[device]);
  }
  for (Stream* stream : there) stream->wait();
  return success;
}

int cuMemAlloc_v2(std::uintptr_t* address, std::size_t bytes) {
  if (const int error = check_capture()) return error;
  Allocation memory{bytes, nullptr, current_device("cuMemAlloc"), 0, false};
  memory.file = static_cast<int>(memfd_create("fake_device", 0));
  if (memory.file < 0 || ftruncate(memory.file, static_cast<off_t>(memory.whole())) != 0) return out_of_memory;
  *address = map_memory(memory, memory.file);
  return *address == 0 ? out_of_memory : success;
}

// As the real one, waits for all that is on the device.
int cuMemFree_v2(std::uintptr_t address) {
  if (const int error = cuCtxSynchronize()) return error;
  free_memory("cuMemFree", address);
  return success;
}

int cuMemAllocAsync(std::uintptr_t* address, std::size_t bytes, void* stream) {
  stream_at("cuMemAllocAsync", stream);
  const int error = cuMemAlloc_v2(address, bytes);
  if (error == success) {
    const std::lock_guard lock(driver().mutex);
    driver().allocations[*address].is_pooled = true;
  }
  return error;
}

int cuMemFreeAsync(std::uintptr_t address, void* stream) {
  memory_at("cuMemFreeAsync", reinterpret_cast<void*>(address), 0, -1);
  put(stream_at("cuMemFreeAsync", stream), [=] { free_memory("cuMemFreeAsync", address); });
  return success;
}

int cuDeviceGetDefaultMemPool(void** pool, int device) {
  *pool = context_of(device);
  return success;
}

int cuMemPoolGetAttribute(void* pool, int attribute, std::uint64_t* value) {
  if (attribute != release_threshold) return invalid_value;
  *value = driver().kept[reinterpret_cast<std::intptr_t>(pool) - 1];
  return success;
}

int cuMemPoolSetAttribute(void* pool, int attribute, const std::uint64_t* value) {
  if (attribute != release_threshold) return invalid_value;
  driver().kept[reinterpret_cast<std::intptr_t>(pool) - 1] = *value;
  return success;
}

int cuMemcpyHtoDAsync_v2(std::uintptr_t to, const void* from, std::size_t bytes, void* stream) {
  std::byte* const there = memory_at("cuMemcpyHtoDAsync", reinterpret_cast<void*>(to), bytes, -1);
  put(stream_at("cuMemcpyHtoDAsync", stream), [=] { std::memcpy(there, from, bytes); });
  return success;
}

int cuMemcpyDtoHAsync_v2(void* to, std::uintptr_t from, std::size_t bytes, void* stream) {
  const std::byte* const there = memory_at("cuMemcpyDtoHAsync", reinterpret_cast<void*>(from), bytes, -1);
  put(stream_at("cuMemcpyDtoHAsync", stream), [=] { std::memcpy(to, there, bytes); });
  return success;
}

int cuMemcpyDtoDAsync_v2(std::uintptr_t to, std::uintptr_t from, std::size_t bytes, void* stream) {
  std::byte* const there = memory_at("cuMemcpyDtoDAsync", reinterpret_cast<void*>(to), bytes, -1);
  const std::byte* const here = memory_at("cuMemcpyDtoDAsync", reinterpret_cast<void*>(from), bytes, -1);
  put(stream_at("cuMemcpyDtoDAsync", stream), [=] { std::memmove(there, here, bytes); });
  return success;
}

int cuMemsetD8Async(std::uintptr_t at, unsigned char value, std::size_t bytes, void* stream) {
  std::byte* const there = memory_at("cuMemsetD8Async", reinterpret_cast<void*>(at), bytes, -1);
  put(stream_at("cuMemsetD8Async", stream), [=] { std::memset(there, value, bytes); });
  return success;
}

int cuGetErrorString(int error, const char** text) {
  *text = error == invalid_device ? "invalid device ordinal" : error == not_ready ? "device not ready" : "fake error";
  return success;
}

}  // extern "C"
