#include "bindings/calls/call_records.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>

#include "platform/failure.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace shim::bindings {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 36;  // of one file; addresses, not memory
constexpr std::size_t chunk = std::size_t{1} << 20;       // by which it grows

struct CallRecord {
  std::uint32_t kind = 2;
  std::uint32_t definition = 0;
  std::int64_t begin = 0;
  std::uint32_t state = 0;
  std::uint32_t error = 0;
  std::int64_t end = 0;
  std::int64_t waited = 0;
  std::uint64_t inputs = 0;
  std::uint64_t outputs = 0;
  std::int32_t source = -1;
  std::uint32_t thread = 0;
};
static_assert(sizeof(CallRecord) == 64);

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::uint32_t this_thread() {
  thread_local const auto id = static_cast<std::uint32_t>(::gettid());
  return id;
}

CallRecord* at(std::byte* start, std::uint64_t call) { return reinterpret_cast<CallRecord*>(start + call); }

}  // namespace

CallRecords::CallRecords(int file) : file_(file) {
  void* const room = ::mmap(nullptr, most_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw Failure(FailureKind::engine, "there are no addresses for a recording");
  start_ = static_cast<std::byte*>(room);
}

CallRecords::~CallRecords() {
  close();
  ::munmap(start_, most_bytes);
}

bool CallRecords::append(nb::bytes record) {
  const std::size_t bytes = (record.size() + 7) / 8 * 8;
  if (!has_room(bytes)) return false;
  std::memcpy(start_ + used_, record.c_str(), record.size());
  used_ += bytes;
  return true;
}

std::uint64_t CallRecords::begin(std::uint32_t definition, std::uint32_t state, std::uint64_t inputs) {
  if (!has_room(sizeof(CallRecord))) return 0;
  const std::uint64_t call = used_;
  used_ += sizeof(CallRecord);
  CallRecord record;
  record.definition = definition;
  record.begin = now();
  record.state = state;
  record.inputs = inputs;
  record.thread = this_thread();
  *at(start_, call) = record;
  return call;
}

void CallRecords::begin_again(std::uint64_t call, std::uint32_t state) {
  if (call == 0 || file_ < 0) return;
  at(start_, call)->begin = now();
  at(start_, call)->state = state;
}

void CallRecords::wait(std::uint64_t call, std::uint32_t state) {
  if (call == 0 || file_ < 0 || at(start_, call)->thread != this_thread()) return;
  at(start_, call)->waited = now();
  at(start_, call)->state = state;
}

void CallRecords::end(std::uint64_t call, std::uint32_t state, std::uint32_t error) {
  if (call == 0 || file_ < 0) return;
  CallRecord& record = *at(start_, call);
  record.end = now();
  record.error = error;
  record.state = state;
}

void CallRecords::note_outputs(std::uint64_t call, std::uint64_t digest) {
  if (call != 0 && file_ >= 0) at(start_, call)->outputs = digest;
}

void CallRecords::note_source(std::uint64_t call, std::int32_t rank) {
  if (call != 0 && file_ >= 0) at(start_, call)->source = rank;
}

void CallRecords::close() {
  if (file_ < 0) return;
  if (::ftruncate(file_, static_cast<off_t>(used_)) != 0) std::perror("shim: a recording cannot be cut to its end");
  ::close(file_);
  file_ = -1;
}

// The disk's blocks are allocated: to write to a mapping without them would end the process.
bool CallRecords::has_room(std::size_t bytes) {
  if (file_ < 0) return false;
  if (used_ + bytes <= room_) return true;
  const std::size_t more = (used_ + bytes - room_ + chunk - 1) / chunk * chunk;
  const int error = ::posix_fallocate(file_, static_cast<off_t>(room_), static_cast<off_t>(more));
  const bool is_mapped = error == 0 && room_ + more <= most_bytes &&
                         ::mmap(start_ + room_, more, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_,
                                static_cast<off_t>(room_)) != MAP_FAILED;
  if (!is_mapped) {
    std::fprintf(stderr, "shim: the recording cannot grow, and goes no further: %s\n",
                 error == 0 ? "it has reached its largest size" : std::strerror(error));
    close();
    return false;
  }
  room_ += more;
  return true;
}

void define_call_records(nb::module_& module) {
  nb::class_<CallRecords>(module, "CallRecords", "The file of a recording; see shim.core.tracing.layout.")
      .def(nb::init<int>(), "file"_a)
      .def("append", &CallRecords::append, "record"_a)
      .def("begin", &CallRecords::begin, "definition"_a, "state"_a, "inputs"_a)
      .def("begin_again", &CallRecords::begin_again, "call"_a, "state"_a)
      .def("wait", &CallRecords::wait, "call"_a, "state"_a)
      .def("end", &CallRecords::end, "call"_a, "state"_a, "error"_a = 0)
      .def("note_outputs", &CallRecords::note_outputs, "call"_a, "digest"_a)
      .def("note_source", &CallRecords::note_source, "call"_a, "rank"_a)
      .def("close", &CallRecords::close)
      .def("leave", &CallRecords::leave);
}

}  // namespace shim::bindings
