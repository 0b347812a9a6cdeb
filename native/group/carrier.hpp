// What takes a rank's words to ranks that do not share its memory, and theirs to it.
//
// In such a group the ranks of each host share a segment, in which the other hosts' arrivals are copies: the host's
// leader exchanges them with the leaders of the others. All else a rank is told by them directly: see mirror.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "group/shared_layout.hpp"

namespace shim {

// Called by whichever thread says something, which holds none of a group's locks, nor the interpreter's.
class Carrier {
 public:
  virtual ~Carrier() = default;
  // Exchanges the arrivals at `sequence` with the other hosts as far as that can be done at once, and tells whether
  // nothing is left of it; for a leader whose rank has arrived and waits for the others. Throws Failure.
  virtual bool exchange(std::uint64_t sequence) = 0;
  // This rank has arrived with the news that its call was refused, and waits for nobody.
  virtual void refused(std::uint64_t sequence) = 0;
  // Sleeps until something may have come from another host, or ring(), or for so long; returns at once, and false,
  // where nothing is awaited from there.
  virtual bool sleep(std::chrono::milliseconds longest) = 0;
  // Ends that, from any thread.
  virtual void ring() = 0;
  // Where in the program a call was made that did not fit the others'.
  virtual void told_place(std::uint64_t sequence, std::string_view place) = 0;
  // Finds out what the others are at, as a wait has taken long: afterwards their notes and arrivals are here.
  virtual void ask_all() = 0;
  // This rank left the group, or gave it up: because of `cause`, a group rank or -1, or as its time was up (`is_late`).
  virtual void ended(RankState state, int cause, const std::string& reason, bool has_left, bool is_late) = 0;
  // Where the program of another rank was when all were asked, which has left no note: "is at train.py:12 in step".
  virtual std::string whereabouts(int rank) = 0;
  // Which ranks wait for each other in a circle, in whatever groups: as of told_circle, nothing without one.
  virtual std::string circle() = 0;
};

}  // namespace shim
