// How a rank writes the slots that others read: through the caches, or past them.
//
// Before a processor writes a line, those that have read it must drop it. Where their caches are near, this hardly
// takes time, and the line goes from cache to cache faster than by memory. Where they are far, writing past the caches
// is several times as fast, and reading as fast as before. Which it is can change while a program runs, since a
// virtual machine's processors do not stay where they are. So the writer times the beginnings of some pieces that it
// writes through the caches, and when these have become slow, goes past them but for a few.
//
// How a slot is written is its writer's decision alone: it changes no bit, and nobody else need know.
#pragma once

#include <chrono>
#include <cstddef>

namespace shim {

inline constexpr std::size_t streamed_from = 16 * 1024;  // bytes of a piece; smaller ones go through the caches
inline constexpr std::size_t timed_bytes = 8 * 1024;     // at the beginning of a piece
static_assert(timed_bytes <= streamed_from);

// What follows from the times.
class SlotTimes {
 public:
  static constexpr int enough = 3;
  static constexpr int cached_for_each_timed = 8;
  static constexpr int streamed_for_each_timed = 128;

  // Whether pieces are to be streamed, the timed bytes excepted.
  bool stream() const { return slow_ == enough; }
  // Of the next piece: whether its beginning is to be written through the caches and timed.
  bool time_next();
  // Of timed_bytes. One slow time may be an interruption; several in a row are not.
  void add(std::chrono::nanoseconds taken);

 private:
  int slow_ = 0;    // slow times less fast ones, from 0 to `enough`
  int passed_ = 0;  // pieces since the last one that was timed
};

// Writes slots that have the same readers, those of a ring or of a channel. Of one thread at a time.
class SlotStores {
 public:
  // Copies a piece, which can be published afterwards.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);
  // Whether a piece of so many bytes that is not copied but made is to be streamed.
  bool stream(std::size_t bytes) const { return bytes >= streamed_from && times_.stream(); }

  SlotTimes& times() { return times_; }

 private:
  SlotTimes times_;
};

}  // namespace shim
