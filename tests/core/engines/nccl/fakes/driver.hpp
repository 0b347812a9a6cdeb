// What the fake CUDA driver knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "streams.hpp"

namespace fake {

constexpr int devices = 8;
constexpr int success = 0, invalid_value = 1, out_of_memory = 2, invalid_device = 101, not_ready = 600,
              capture_unsupported = 900, capture_invalidated = 901, captured_event = 907;

struct Allocation {
  std::size_t bytes;
  std::byte* alias;  // the same memory, where it can be read and written
  int device;
  int file;        // which keeps it; 0 where another process has made it
  bool is_pooled;  // by the driver, who does not export it
  std::size_t whole() const { return guard_at() + page; }
  std::size_t guard_at() const { return (bytes + page - 1) / page * page; }

  static constexpr std::size_t page = 4096;
};

// A graph that a thread captures; in the global mode no thread may look at the device meanwhile.
struct Capture {
  std::thread::id by;
  int mode;
  bool is_invalid = false;
};

// Never destroyed: streams go on until the process ends.
struct Driver {
  std::mutex mutex;
  bool is_begun = false;
  std::map<std::uintptr_t, Allocation> allocations;
  std::map<void*, Stream*> streams;
  std::map<void*, std::shared_ptr<Event>> events;
  Stream* legacy[devices] = {};
  std::map<Stream*, Capture> captures;
  std::set<void*> graphs;
  std::uint64_t kept[devices] = {};  // bytes that each device's pool does not give back
};
Driver& driver();

// A stream of the driver's, or one of the two default streams of the current device. Ends the process for anything
// else, and where no context is current.
Stream& stream_at(const char* function, void* handle);
std::shared_ptr<Event> event_at(const char* function, void* handle);

// Has the stream do `work` after what it was given before, and after what CUDA has go first: the legacy stream and
// those that block wait for each other. Drops it where a graph is captured.
void put(Stream& stream, std::function<void()> work);

// Maps the memory that `file` keeps, and returns where the device has it; 0 if that cannot be done.
std::uintptr_t map_memory(Allocation memory, int file);
void free_memory(const char* function, std::uintptr_t address);
void unmap_memory(std::uintptr_t address, const Allocation& memory);

// Ends the process if another one has the memory open.
void check_nobody_has_open(const char* function, const Allocation& memory);

}  // namespace fake
