// The ranks of a group as this one knows them: which are present, how the others went, and which processes they are.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "group/shared_layout.hpp"
#include "platform/segment.hpp"

namespace shim {

// A rank that gave the group up may make another one with the survivors; once it leaves, or its process ends, it has
// left. A rank has died where its process ended before it said anything.
enum class Presence : std::uint8_t { present, gave_up, left, died };

// Any thread may ask.
class Peers {
 public:
  // `lines` and `notes` are those of the ranks, of which this process is `rank`.
  Peers(const std::vector<StatusLine*>& lines, const std::vector<RankNote*>& notes, int rank);

  Presence presence(int rank) const;
  bool is_gone(int rank) const { return presence(rank) != Presence::present; }
  // Whether every other rank is gone.
  bool are_all_gone() const;
  // Whether `rank` left and gave no reason: it had neither given the group up, nor ended by an error.
  bool left_in_order(int rank) const {
    return line(rank).state.load() == RankState::left && line(rank).reason[0] == '\0';
  }
  // Of the ranks that are gone and not ready, the one that went for a reason of its own, as far as can be told: whoever
  // died first, else who gave up; those that left may have done so because of either. -1 when there is none.
  int first_missed(const std::function<bool(int)>& is_ready) const;
  // The rank whose loss made `rank` give up, and the one whose loss made that one give up, and so on.
  int culprit_behind(int rank) const;
  // How a rank that is gone went: " left the group".
  std::string ending_of(int rank) const;
  // What `reporter` knows of how `lost` went, where this process does not: ": " and that, or nothing.
  std::string words_of(int reporter, int lost) const;
  // Waits a moment where this process has not yet heard itself how `rank` went, as another one has.
  void wait_for_word_of(int rank) const;

  // Notes that the process of `rank` ended, and how: "was killed by SIGKILL", empty where nobody knows. False where
  // that was known.
  bool note_end(int rank, std::string how);
  // Whether it did. A rank that left may still be at something that it had begun.
  bool process_has_ended(int rank) const { return ended_at(rank) != 0; }
  // Reads from the pidfds which processes the others are; before anything needs them. Else they are this process.
  void set_processes(const std::vector<Descriptor>& pidfds);
  // The number of the process that `rank` is; 0 where it has none here.
  int process_of(int rank) const { return processes_[static_cast<std::size_t>(rank)]; }
  // The same where this process can read its memory, and that is the right one; else 0.
  int process_to_read(int rank) const;

 private:
  struct End {
    std::atomic<std::int64_t> at{0};  // steady nanoseconds; 0 while the process lives; written last
    std::string how;
  };
  std::int64_t ended_at(int rank) const { return ends_[static_cast<std::size_t>(rank)].at.load(); }
  const StatusLine& line(int rank) const { return *lines_[static_cast<std::size_t>(rank)]; }
  const RankNote& note(int rank) const { return *notes_[static_cast<std::size_t>(rank)]; }

  const std::vector<StatusLine*>& lines_;
  const std::vector<RankNote*>& notes_;
  int rank_;
  int size_;
  std::unique_ptr<End[]> ends_;  // by rank
  std::vector<int> processes_;   // by rank; 0 for those that have no number here
};

}  // namespace shim
