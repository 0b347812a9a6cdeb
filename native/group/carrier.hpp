// What takes a rank's words to ranks that do not share its memory, and theirs to it.
//
// In such a group each rank has a segment of its own, in which the others' lines are copies: `mirror.hpp` writes them.
// A carrier hears of everything that the others would otherwise read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "group/shared_layout.hpp"

namespace shim {

// Called by whichever thread says something, without locks.
class Carrier {
 public:
  virtual ~Carrier() = default;
  // This rank has arrived at operation `sequence`, perhaps with the news that its call was refused. Returns soon; the
  // others' arrivals may come later. May throw Failure or Interrupted, after which the group is given up.
  virtual void arrived(std::uint64_t sequence, bool is_refused) = 0;
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
