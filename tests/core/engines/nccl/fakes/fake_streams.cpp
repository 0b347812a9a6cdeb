// The fake CUDA driver's functions of streams and events.
#include "fake_cuda.hpp"

#include "driver.hpp"

#include <cstdint>
#include <memory>
#include <mutex>

using namespace fake;

extern "C" {

int cuStreamCreate(void** stream, unsigned) {
  auto* const made = new Stream(current_device("cuStreamCreate"));
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
  stream_at("cuStreamSynchronize", stream).wait();
  return success;
}

int cuStreamQuery(void* stream) { return stream_at("cuStreamQuery", stream).is_idle() ? success : not_ready; }

int cuStreamIsCapturing(void* stream, int* status) {
  *status = stream_at("cuStreamIsCapturing", stream).is_capturing ? 1 : 0;
  return success;
}

int cuStreamBeginCapture_v2(void* stream, int) {
  if (stream_at("cuStreamBeginCapture", stream).is_capturing.exchange(true)) return invalid_value;
  return success;
}

int cuStreamEndCapture(void* stream, void** graph) {
  if (!stream_at("cuStreamEndCapture", stream).is_capturing) return invalid_value;
  const std::lock_guard lock(driver().mutex);
  for (const auto& [_, one] : driver().streams) one->is_capturing = false;
  *graph = nullptr;
  return success;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  static thread_local int current = 0;
  std::swap(current, *mode);
  return success;
}

int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const auto waited = event_at("cuStreamWaitEvent", event);
  const std::uint64_t number = waited->recorded;
  Stream& there = stream_at("cuStreamWaitEvent", stream);
  if (waited->is_captured) there.is_capturing = true;
  there.put([=] { waited->wait_for(number); });
  return success;
}

int cuLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
  stream_at("cuLaunchHostFunc", stream).put([=] { function(argument); });
  return success;
}

int cuEventCreate(void** event, unsigned) {
  current_device("cuEventCreate");
  const auto made = std::make_shared<Event>();
  const std::lock_guard lock(driver().mutex);
  driver().events[made.get()] = made;
  *event = made.get();
  return success;
}

int cuEventRecord(void* event, void* stream) {
  current_device("cuEventRecord");
  const auto recorded = event_at("cuEventRecord", event);
  Stream& there = stream_at("cuEventRecord", stream);
  recorded->is_captured = there.is_capturing;
  const std::uint64_t number = ++recorded->recorded;
  there.put([=] { recorded->reach(number); });
  return success;
}

int cuEventQuery(void* event) {
  current_device("cuEventQuery");
  const auto asked = event_at("cuEventQuery", event);
  const std::lock_guard lock(asked->mutex);
  if (asked->is_captured) return captured_event;
  return asked->reached >= asked->recorded ? success : not_ready;
}

int cuEventSynchronize(void* event) {
  const auto waited = event_at("cuEventSynchronize", event);
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
