#include "meeting/meeting_watch.hpp"

#include <algorithm>
#include <cstdint>

#include "group/descriptions.hpp"
#include "platform/digest.hpp"
#include "platform/steady_time.hpp"
#include "reports/circle_report.hpp"
#include "reports/waits.hpp"

namespace shim {
namespace {

constexpr auto before_note = std::chrono::milliseconds(100);
constexpr auto patience = std::chrono::milliseconds(500);  // with those that are asked
constexpr auto between_looks = std::chrono::milliseconds(50);
constexpr auto until_proved = std::chrono::milliseconds(1500);   // the same circle all the time
constexpr auto for_the_others = std::chrono::milliseconds(500);  // which have to see it as well

std::string list_of(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace

MeetingWatch::MeetingWatch(Group& world, const Meeting& meeting, WaitHooks& hooks)
    : world_(world), meeting_(meeting), hooks_(hooks), began_(Clock::now()), warning_(began_) {}

MeetingWatch::~MeetingWatch() {
  if (!has_note_) return;
  RankNote& note = world_.note(world_.rank());
  note.waits_since.store(0);
  note.meeting.store(0);
  world_.has_note.store(false);
}

void MeetingWatch::look() {
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + between_looks;
  if (now - began_ < before_note) return;
  if (!tried_note_) leave_note();
  if (!has_note_) return;
  world_.note(world_.rank()).held.store(held_by(hooks_));
  if (warning_.is_due(now))
    if (const std::string circle = circle_now(); !circle.empty()) StallWarning::write_line(circle.substr(1));
  if (!is_proved_) {
    const std::vector<int> ranks = held_circle();
    std::vector<std::pair<int, std::int64_t>> waits;
    for (const int rank : ranks) waits.emplace_back(rank, world_.note(rank).waits_since.load());
    if (waits.empty() || waits != seen_) {
      seen_ = waits;
      seen_since_ = now;
      return;
    }
    if (now - seen_since_ < until_proved) return;
    is_proved_ = true;
    is_awaited_in_world_ = std::any_of(ranks.begin(), ranks.end(), [this](int rank) {
      const std::vector<int> awaited = awaited_by(world_, rank);
      return world_.note(rank).meeting.load() == 0 &&
             std::find(awaited.begin(), awaited.end(), world_.rank()) != awaited.end();
    });
    text_ = told(ranks);
  }
  if (now - seen_since_ >= until_proved + for_the_others) throw failure();
}

// One thread's wait is noted at a time, see LongWait.
void MeetingWatch::leave_note() {
  tried_note_ = true;
  if (world_.has_note.exchange(true)) return;
  has_note_ = true;
  RankNote& note = world_.note(world_.rank());
  note.waits_for.write("to make group '" + meeting_.name + "' of ranks " + list_of(meeting_.world_ranks));
  note.waits_at.write(hooks_.place());
  note_awaited(world_, meeting_.world_ranks);
  note.held.store(held_by(hooks_));
  note.operation.store(0);
  const std::uint64_t drawn_by_the_world = world_.note(0).identity;
  note.meeting.store(Digest(drawn_by_the_world).add(meeting_.name).value() | 1);  // not 0
  note.waits_since.store(steady_ns(began_));
}

// Of the program's only threads. One of a message is none: nobody here knows what the other rank has already sent.
std::vector<int> MeetingWatch::held_circle() const {
  return circle_from(world_.rank(), [this](int rank) {
    const RankNote& note = world_.note(rank);
    const bool is_of_message = note.operation.load() == 0 && note.meeting.load() == 0;
    return note.held.load() == Held::program && !is_of_message ? awaited_by(world_, rank) : std::vector<int>();
  });
}

std::string MeetingWatch::circle_now() const {
  const std::string circle = circle_report(world_.note(world_.rank()).address.read(), Clock::now() + patience);
  return circle.empty() ? circle : "\n" + circle;
}

std::string MeetingWatch::told(const std::vector<int>& ranks) const {
  std::string text = "group '" + meeting_.name + "' cannot be made, because these ranks wait for each other";
  std::vector<int> order = ranks;
  if (std::find(order.begin(), order.end(), world_.rank()) == order.end()) order.push_back(world_.rank());
  std::sort(order.begin(), order.end());
  for (const int rank : order)
    text += "\n  rank " + std::to_string(rank) + " " + noted_wait(world_, rank) +
            (rank == world_.rank() ? "  <- this rank" : "");
  return text + "\nNo group was made: all of its members, ranks " + list_of(meeting_.world_ranks) +
         ", must make it, in one order with their other calls.";
}

}  // namespace shim
