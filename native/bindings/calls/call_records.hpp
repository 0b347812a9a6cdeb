// The file into which a process records its calls; shim/core/tracing/layout.py says what it holds.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

namespace shim::bindings {

// Owns the descriptor and a mapping of the file, in which what was recorded stays if the process is killed. Guarded by
// the GIL. Where the disk is full, it says so on standard error and records no more.
class CallRecords {
 public:
  explicit CallRecords(int file);
  ~CallRecords();
  CallRecords(const CallRecords&) = delete;

  // A record of any size; its length is made a multiple of 8. Returns whether there was room.
  bool append(nanobind::bytes record);
  // Returns where the call is in the file, 0 where nothing is recorded any more.
  std::uint64_t begin(std::uint32_t definition, std::uint32_t state, std::uint64_t inputs);
  void begin_again(std::uint64_t call, std::uint32_t state);
  // Of the thread that began the call: another one, which waits to complete a future, does not hold up the program.
  void wait(std::uint64_t call, std::uint32_t state);
  void end(std::uint64_t call, std::uint32_t state, std::uint32_t error);
  void note_outputs(std::uint64_t call, std::uint64_t digest);
  void note_source(std::uint64_t call, std::int32_t rank);
  // Cuts the file to what was recorded.
  void close();
  // In a forked child: the file is the parent's.
  void leave() { file_ = -1; }

 private:
  bool has_room(std::size_t bytes);

  int file_;
  std::byte* start_ = nullptr;
  std::size_t room_ = 0;
  std::size_t used_ = 0;
};

void define_call_records(nanobind::module_& module);

}  // namespace shim::bindings
