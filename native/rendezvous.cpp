#include "rendezvous.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include "failure.hpp"
#include "fault_points.hpp"
#include "group_memory.hpp"
#include "process.hpp"
#include "processors.hpp"
#include "shared_layout.hpp"
#include "socket_messages.hpp"
#include "stall_warning.hpp"

namespace shim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int slice_ms = 50;
constexpr auto address_in_use_patience = std::chrono::seconds(2);  // an earlier group with this key may be ending
constexpr auto hello_patience = std::chrono::seconds(5);
constexpr auto connect_pause = std::chrono::milliseconds(1);

// Messages begin with one of these letters.
constexpr char welcome = '+';  // the memory
constexpr char files = 'p';    // pidfds, from the rank that follows
constexpr char refusal = '!';  // a FailureKind as one letter, and why

std::string list_of(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

// What all ranks of a group must agree on, as they would tell it to a person.
std::string identity_of(const Meeting& meeting) {
  return "a group of " + std::to_string(meeting.world_ranks.size()) + " with the ranks [" +
         list_of(meeting.world_ranks) + "], protocol " + std::to_string(protocol_version) + ", " +
         std::to_string(SharedLayout(static_cast<int>(meeting.world_ranks.size())).total_bytes()) + " bytes";
}

// What a rank says first to rank 0, and a process that wants to be rank 0 to the one that is.
void introduce(const Descriptor& socket, const Meeting& meeting) {
  send_message(socket, std::to_string(meeting.rank) + " " + text_of(usable_processors()) + "\n" + identity_of(meeting),
               {pidfd_of_this_process().get()});
}

Failure two_hosts(const Meeting& meeting) {
  return Failure(FailureKind::state, "two processes are rank 0 of group '" + meeting.name +
                                         "' of this job\nEither both were given rank 0, or another job on this "
                                         "host uses the same address: choose another MASTER_PORT.");
}

// When all have come: while they start, they keep the processors busy.
Segment memory_of(const Meeting& meeting, const std::vector<Processors>& processors) {
  const int ranks = static_cast<int>(meeting.world_ranks.size());
  const int together = static_cast<int>(count_together(processors));
  return memory_for(ranks, thresholds_for(this_machine(meeting.measurements), ranks, together),
                    are_crowded(processors));
}

bool has_event(int fd, short events) {
  pollfd entry{fd, events, 0};
  return ::poll(&entry, 1, 0) > 0;
}

// Rank 0's side.
class Host {
 public:
  Host(const Meeting& meeting, const std::function<void()>& check_interrupted)
      : meeting_(meeting),
        check_interrupted_(check_interrupted),
        deadline_(Clock::now() +
                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(meeting.timeout))),
        guests_(meeting.world_ranks.size()) {}

  Encounter gather() {
    try {
      open();
      while (missing().size() > 0) admit_one();
      listener_ = Descriptor();  // before anybody can be back for the next group with this key
      Segment segment = memory_of(meeting_, processors());
      fault_point("welcome");
      for (std::size_t rank = 1; rank < guests_.size(); ++rank) send_welcome(rank, segment);
      return {std::move(segment), take_pidfds()};
    } catch (const Failure& failure) {
      for (const Guest& guest : guests_) refuse(guest.socket, failure);
      while (const Descriptor late = listener_ ? accept_from(listener_, 0) : Descriptor()) refuse(late, failure);
      throw;
    }
  }

 private:
  struct Guest {
    Descriptor socket;
    Descriptor pidfd;
    Processors processors;
  };

  void open() {
    const auto patience = std::min(deadline_, Clock::now() + address_in_use_patience);
    while (!(listener_ = listen_at(address_of(meeting_.key)))) {
      if (Clock::now() > patience) {
        if (const Descriptor other = connect_to(address_of(meeting_.key))) introduce(other, meeting_);
        throw two_hosts(meeting_);
      }
      check_interrupted_();
      std::this_thread::sleep_for(connect_pause);
    }
  }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (std::size_t rank = 1; rank < guests_.size(); ++rank)
      if (!guests_[rank].socket) ranks.push_back(static_cast<int>(rank));
    return ranks;
  }

  void admit_one() {
    check_interrupted_();
    if (Clock::now() > deadline_)
      throw Failure(FailureKind::timeout,
                    "after " + shown_seconds(meeting_.timeout) + ", these ranks of group '" + meeting_.name +
                        "' had not come: " + list_of(missing()),
                    missing());
    if (warning_.is_due(Clock::now()))
      StallWarning::write("rank 0", "for these ranks of group '" + meeting_.name + "' to come: " + list_of(missing()),
                          meeting_.timeout);
    for (std::size_t rank = 1; rank < guests_.size(); ++rank) check_alive(rank);
    Descriptor socket = accept_from(listener_, slice_ms);
    if (!socket) return;
    try {
      admit(socket);
    } catch (const Failure& failure) {
      refuse(socket, failure);
      throw;
    }
  }

  void admit(Descriptor& socket) {
    std::optional<Message> hello = hear(socket);
    if (!hello || hello->files.size() != 1) return;
    const std::string theirs = behind('\n', hello->bytes);
    const long rank = std::strtol(hello->bytes.c_str(), nullptr, 10);
    if (rank == 0 && theirs != identity_of(meeting_)) return;  // another job's, which knows what to tell its own
    check_identity(rank, theirs);
    const Processors theirs_to_use = processors_in(behind(' ', hello->bytes.substr(0, hello->bytes.find('\n'))));
    guests_[static_cast<std::size_t>(rank)] = {std::move(socket), std::move(hello->files[0]), theirs_to_use};
  }

  std::vector<Processors> processors() const {
    std::vector<Processors> by_rank = {usable_processors()};
    for (std::size_t rank = 1; rank < guests_.size(); ++rank) by_rank.push_back(guests_[rank].processors);
    return by_rank;
  }

  // What a newcomer says, which on a busy machine may take it a while.
  std::optional<Message> hear(const Descriptor& socket) const {
    const auto patience = Clock::now() + hello_patience;
    for (;;) {
      std::optional<Message> message = receive_message(socket, slice_ms);
      if (message || Clock::now() > patience) return message;
      check_interrupted_();
    }
  }

  void check_identity(long rank, const std::string& theirs) const {
    if (rank == 0) throw two_hosts(meeting_);
    const std::string mine = identity_of(meeting_);
    if (theirs != mine)
      throw Failure(FailureKind::mismatch, "ranks differ about group '" + meeting_.name + "'\n  rank 0: " + mine +
                                               "\n  rank " + std::to_string(rank) + ": " + theirs);
    if (rank < 1 || static_cast<std::size_t>(rank) >= guests_.size())
      throw Failure(FailureKind::mismatch, "a process came as rank " + std::to_string(rank) + " of group '" +
                                               meeting_.name + "', which has " + std::to_string(guests_.size()));
    if (guests_[static_cast<std::size_t>(rank)].socket)
      throw Failure(FailureKind::mismatch,
                    "two processes came as rank " + std::to_string(rank) + " of group '" + meeting_.name + "'");
  }

  void check_alive(std::size_t rank) const {
    const Guest& guest = guests_[rank];
    if (guest.socket && (has_event(guest.pidfd.get(), POLLIN) || has_event(guest.socket.get(), POLLRDHUP | POLLHUP)))
      throw Failure(FailureKind::peer_lost,
                    "rank " + std::to_string(rank) + " went while group '" + meeting_.name + "' was being formed",
                    {static_cast<int>(rank)});
  }

  void send_welcome(std::size_t rank, const Segment& segment) {
    const Descriptor mine = pidfd_of_this_process();
    send_message(guests_[rank].socket, std::string(1, welcome), {segment.file()});
    for (std::size_t first = 0; first < guests_.size(); first += max_files) {
      std::vector<int> pidfds;
      for (std::size_t peer = first; peer < std::min(first + max_files, guests_.size()); ++peer)
        pidfds.push_back(peer == 0 ? mine.get() : guests_[peer].pidfd.get());
      send_message(guests_[rank].socket, files + std::to_string(first), pidfds);
    }
  }

  static void refuse(const Descriptor& socket, const Failure& failure) {
    if (!socket) return;
    std::string text = {refusal, static_cast<char>('a' + static_cast<int>(failure.kind))};
    for (const int rank : failure.ranks) text += std::to_string(rank) + ',';
    send_message(socket, text + '\n' + failure.what(), {});
  }

  std::vector<Descriptor> take_pidfds() {
    std::vector<Descriptor> pidfds;
    for (Guest& guest : guests_) pidfds.push_back(std::move(guest.pidfd));
    return pidfds;
  }

  const Meeting& meeting_;
  const std::function<void()>& check_interrupted_;
  Clock::time_point deadline_;
  StallWarning warning_{Clock::now()};
  Descriptor listener_;
  std::vector<Guest> guests_;  // by rank; rank 0's stays empty
};

[[noreturn]] void throw_refusal(const std::string& bytes) {
  const std::size_t end = bytes.find('\n');
  std::vector<int> ranks;
  for (std::size_t at = 2; at < end;) {
    ranks.push_back(std::stoi(bytes.substr(at)));
    at = bytes.find(',', at) + 1;
  }
  const int kind = bytes[1] - 'a';
  const bool is_known = kind >= 0 && kind <= static_cast<int>(FailureKind::memory);
  throw Failure(is_known ? static_cast<FailureKind>(kind) : FailureKind::engine, bytes.substr(end + 1), ranks);
}

// The side of every other rank.
Encounter visit(const Meeting& meeting, const std::function<void()>& check_interrupted) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(meeting.timeout);
  const auto check_time = [&](const char* what) {
    check_interrupted();
    if (Clock::now() > deadline)
      throw Failure(FailureKind::timeout,
                    "after " + shown_seconds(meeting.timeout) + ", " + what + " (group '" + meeting.name + "')", {0});
  };
  Descriptor socket;
  StallWarning warning(Clock::now());
  while (!(socket = connect_to(address_of(meeting.key)))) {
    check_time("rank 0 had not come");
    if (warning.is_due(Clock::now()))
      StallWarning::write("rank " + std::to_string(meeting.rank), "for rank 0 of group '" + meeting.name + "' to come",
                          meeting.timeout);
    std::this_thread::sleep_for(connect_pause);
  }
  introduce(socket, meeting);
  fault_point("introduced");

  std::optional<Segment> segment;
  std::vector<Descriptor> pidfds(meeting.world_ranks.size());
  for (std::size_t known = 0; known < pidfds.size();) {
    // Rank 0's own limit began later than this one's and its answer names who is missing, so it gets a moment more.
    std::optional<Message> message = receive_message(socket, slice_ms);
    if (!message) {
      check_interrupted();
      if (Clock::now() > deadline + std::chrono::seconds(1)) check_time("rank 0 had not gathered all ranks");
      continue;
    }
    if (message->bytes.empty())
      throw Failure(FailureKind::peer_lost,
                    "rank 0 went, or gave up, while group '" + meeting.name + "' was being formed", {0});
    if (message->bytes[0] == refusal) throw_refusal(message->bytes);
    if (message->bytes[0] == welcome && message->files.size() == 1)
      segment.emplace(
          Segment::attach(std::move(message->files[0]), SharedLayout(static_cast<int>(pidfds.size())).total_bytes()));
    if (message->bytes[0] == files) {
      for (Descriptor& pidfd : message->files) {
        if (known < pidfds.size()) pidfds[known] = std::move(pidfd);
        ++known;
      }
    }
  }
  if (!segment) throw Failure(FailureKind::engine, "rank 0 sent no memory");
  pidfds[static_cast<std::size_t>(meeting.rank)] = Descriptor();
  return {std::move(*segment), std::move(pidfds)};
}

}  // namespace

Encounter meet(const Meeting& meeting, const std::function<void()>& check_interrupted) {
  fault_point("meeting");
  if (meeting.world_ranks.size() == 1) return {memory_of(meeting, {usable_processors()}), std::vector<Descriptor>(1)};
  return meeting.rank == 0 ? Host(meeting, check_interrupted).gather() : visit(meeting, check_interrupted);
}

}  // namespace shim
