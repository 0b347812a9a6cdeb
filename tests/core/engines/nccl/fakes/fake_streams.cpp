// The fake CUDA driver's functions of streams and events.
#include "fake_cuda.hpp"

#include "driver.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace fake {
namespace {

constexpr int global = 0, relaxed = 2;  // modes of a capture, and of a thread
thread_local int mode_of_thread = global;

// What goes before anything that is put on the stream now.
std::vector<std::pair<Stream*, std::uint64_t>> goes_first(const Stream& stream) {
  std::vector<std::pair<Stream*, std::uint64_t>> first;
  const std::lock_guard lock(driver().mutex);
  Stream* const legacy = driver().legacy[stream.device];
  if (stream.kind == Kind::blocking && legacy != nullptr) first.emplace_back(legacy, legacy->given());
  if (stream.kind == Kind::legacy)
    for (const auto& [_, one] : driver().streams)
      if (one->device == stream.device && one->kind == Kind::blocking) first.emplace_back(one, one->given());
  return first;
}

}  // namespace

void put(Stream& stream, std::function<void()> work) {
  static std::mutex ordering;
  const std::lock_guard lock(ordering);
  stream.put([first = goes_first(stream), work = std::move(work)] {
    for (const auto& [other, until] : first) other->wait_for(until);
    work();
  });
}

int check_capture(bool is_own_fine) {
  const std::lock_guard lock(driver().mutex);
  for (auto& [_, capture] : driver().captures) {
    const bool is_own = capture.by == std::this_thread::get_id();
    const bool is_forbidden = is_own ? !is_own_fine && mode_of_thread != relaxed && capture.mode != relaxed
                                     : mode_of_thread == global && capture.mode == global;
    if (!is_forbidden) continue;
    capture.is_invalid = true;
    return capture_unsupported;
  }
  return success;
}

bool has_graphs() {
  const std::lock_guard lock(driver().mutex);
  return !driver().graphs.empty();
}

}  // namespace fake

using namespace fake;

extern "C" {

int cuStreamCreate(void** stream, unsigned flags) {
  if (flags > 1) return invalid_value;
  auto* const made = new Stream(current_device("cuStreamCreate"), flags == 1 ? Kind::non_blocking : Kind::blocking);
  const std::lock_guard lock(driver().mutex);
  driver().streams[made] = made;
  *stream = made;
  return success;
}

int cuStreamDestroy_v2(void* stream) {
  stream_at("cuStreamDestroy", stream);
  const std::lock_guard lock(driver().mutex);
  driver().streams.erase(stream);  // its thread goes on with what it has
  return success;
}

int cuStreamSynchronize(void* stream) {
  Stream& there = stream_at("cuStreamSynchronize", stream);
  if (const int error = check_capture()) return error;
  there.wait();
  return success;
}

int cuStreamQuery(void* stream) {
  Stream& there = stream_at("cuStreamQuery", stream);
  if (const int error = check_capture()) return error;
  return there.is_idle() ? success : not_ready;
}

int cuStreamIsCapturing(void* stream, int* status) {
  *status = stream_at("cuStreamIsCapturing", stream).is_capturing ? 1 : 0;
  return success;
}

int cuStreamBeginCapture_v2(void* stream, int mode) {
  Stream& there = stream_at("cuStreamBeginCapture", stream);
  if (there.kind == Kind::legacy) return capture_unsupported;
  if (there.is_capturing.exchange(true)) return invalid_value;
  const std::lock_guard lock(driver().mutex);
  driver().captures[&there] = {std::this_thread::get_id(), mode};
  return success;
}

int cuStreamEndCapture(void* stream, void** graph) {
  Stream& there = stream_at("cuStreamEndCapture", stream);
  const std::lock_guard lock(driver().mutex);
  const auto found = driver().captures.find(&there);
  if (found == driver().captures.end()) return invalid_value;
  for (const auto& [_, one] : driver().streams) one->is_capturing = false;
  const bool is_invalid = found->second.is_invalid;
  driver().captures.erase(found);
  *graph = is_invalid ? nullptr : *driver().graphs.insert(new char).first;
  return is_invalid ? capture_invalidated : success;
}

int cuGraphDestroy(void* graph) {
  const std::lock_guard lock(driver().mutex);
  if (driver().graphs.erase(graph) == 0) wrong_use("cuGraphDestroy", "a graph that is none");
  delete static_cast<char*>(graph);
  return success;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  current_device("cuThreadExchangeStreamCaptureMode");
  std::swap(mode_of_thread, *mode);
  return success;
}

int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const auto waited = event_at("cuStreamWaitEvent", event);
  const std::uint64_t number = waited->recorded;
  Stream& there = stream_at("cuStreamWaitEvent", stream);
  if (waited->is_captured) there.is_capturing = true;
  put(there, [=] { waited->wait_for(number); });
  return success;
}

int cuLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
  put(stream_at("cuLaunchHostFunc", stream), [=] { function(argument); });
  return success;
}

int cuEventCreate(void** event, unsigned) {
  const auto made = std::make_shared<Event>(current_device("cuEventCreate"));
  const std::lock_guard lock(driver().mutex);
  driver().events[made.get()] = made;
  *event = made.get();
  return success;
}

int cuEventRecord(void* event, void* stream) {
  const auto recorded = event_at("cuEventRecord", event);
  Stream& there = stream_at("cuEventRecord", stream);
  if (recorded->device != there.device) wrong_use("cuEventRecord", "an event of another device");
  recorded->is_captured = there.is_capturing;
  const std::uint64_t number = ++recorded->recorded;
  put(there, [=] { recorded->reach(number); });
  return success;
}

int cuEventQuery(void* event) {
  current_device("cuEventQuery");
  const auto asked = event_at("cuEventQuery", event);
  if (const int error = check_capture()) return error;
  const std::lock_guard lock(asked->mutex);
  if (asked->is_captured) return captured_event;
  return asked->reached >= asked->recorded ? success : not_ready;
}

int cuEventSynchronize(void* event) {
  const auto waited = event_at("cuEventSynchronize", event);
  if (const int error = check_capture()) return error;
  waited->wait_for(waited->recorded);
  return success;
}

int cuEventDestroy_v2(void* event) {
  current_device("cuEventDestroy");
  event_at("cuEventDestroy", event);
  const std::lock_guard lock(driver().mutex);
  driver().events.erase(event);
  return success;
}

}  // extern "C"
