#include "meeting/rendezvous.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "meeting/rendezvous_host.hpp"
#include "meeting/rendezvous_listeners.hpp"
#include "meeting/rendezvous_messages.hpp"
#include "platform/failure.hpp"
#include "platform/fault_points.hpp"
#include "platform/socket_messages.hpp"
#include "platform/stall_warning.hpp"

namespace shim {
namespace {

using Clock = std::chrono::steady_clock;

// The side of every rank but 0.
class Guest {
 public:
  Guest(const Meeting& meeting, const std::function<void()>& check_interrupted)
      : meeting_(meeting),
        check_interrupted_(check_interrupted),
        deadline_(Clock::now() + std::chrono::duration<double>(meeting.timeout)),
        addresses_(addresses_of(meeting)) {
    for (const MeetingAddress& address : addresses_) from_.push_back(Clock::now() + delay_at(address, meeting));
  }

  void visit(const Join& join) {
    try {
      Message message;
      do {
        connect();
        introduce(socket_, meeting_);
        fault_point("introduced");
        message = hear();
      } while (is_of_another_job(message));
      Encounter encounter = take_gifts(std::move(message));
      fault_point("joining");
      join(std::move(encounter));
      send_message(socket_, std::string(1, joined), {});
      fault_point("joined");
      if (hear().bytes[0] != all_joined) throw no_host();
    } catch (const Failure& failure) {
      refuse(socket_, failure);  // the others are not to wait for this rank
      throw;
    } catch (const std::exception& error) {  // Ctrl-C, for one
      refuse(socket_, Failure(FailureKind::peer_lost, error.what(), {meeting_.rank}));
      throw;
    }
  }

 private:
  void connect() {
    while (!find_rank_0()) {
      check_interrupted_();
      if (Clock::now() > deadline_) throw late(("rank 0 had not come" + other_job_).c_str());
      if (arrival_warning_.is_due(Clock::now())) warn(("to come" + other_job_).c_str());
      std::this_thread::sleep_for(rendezvous_pause);
    }
  }

  bool find_rank_0() {
    for (at_ = 0; at_ < addresses_.size(); ++at_) {
      if (Clock::now() < from_[at_]) continue;
      may_be_at_another_job_ = knows_better(meeting_.origin, addresses_[at_]);
      if ((socket_ = connect_to(addresses_[at_].text))) return true;
    }
    return false;
  }

  // Whether rank 0 is one of another job, of which this rank tells, and goes on looking for its own.
  bool is_of_another_job(const Message& message) {
    if (!message.bytes.empty() && message.bytes[0] != another_job) return false;
    from_[at_] = Clock::now() + std::chrono::seconds(1);
    if (other_job_.empty() && !message.bytes.empty()) {
      other_job_ = "; " + message.bytes.substr(1) + ", is rank 0 of another job there";
      warn_of_another_job(meeting_, "rank 0", message.bytes.substr(1));
    }
    return true;
  }

  void warn(const char* awaited) const {
    StallWarning::write("rank " + std::to_string(meeting_.rank),
                        "for rank 0 of group '" + meeting_.name + "' " + awaited, meeting_.timeout);
  }

  // The memory, and the pidfds of all ranks.
  Encounter take_gifts(Message message) {
    if (message.bytes[0] != welcome || message.files.size() != 1) throw no_host();
    deadline_ = std::max(deadline_, decltype(deadline_)(Clock::now() + join_patience));
    has_memory_ = true;
    may_be_at_another_job_ = false;
    const std::size_t ranks = meeting_.world_ranks.size();
    Segment segment = Segment::attach(std::move(message.files[0]), meeting_.layout().total_bytes());
    std::vector<Descriptor> pidfds;
    while (pidfds.size() < ranks) {
      message = hear();
      if (message.bytes[0] != files || message.files.empty() || pidfds.size() + message.files.size() > ranks)
        throw no_host();
      for (Descriptor& pidfd : message.files) pidfds.push_back(std::move(pidfd));
    }
    pidfds[static_cast<std::size_t>(meeting_.rank)] = Descriptor();
    return {std::move(segment), std::move(pidfds)};
  }

  // What rank 0 says next, which is not nothing. Throws why it sends this rank away.
  Message hear() {
    StallWarning warning(Clock::now());
    for (;;) {
      std::optional<Message> message = receive_message(socket_, rendezvous_slice_ms);
      if (!message) {
        check_interrupted_();
        // Rank 0's own limit began later than this one's and its answer names who is missing, so it gets a moment more.
        if (Clock::now() > deadline_ + std::chrono::seconds(1))
          throw late(has_memory_ ? "rank 0 had not said that all ranks have joined"
                                 : "rank 0 had not gathered all ranks");
        if (warning.is_due(Clock::now()))
          warn(has_memory_ ? "to say that all have joined" : "to say that all have come");
        continue;
      }
      if (message->bytes.empty() && may_be_at_another_job_) return {};  // who went is not proven to be its own rank 0
      if (message->bytes.empty())
        throw Failure(FailureKind::peer_lost,
                      "rank 0 went, or gave up, while group '" + meeting_.name + "' was being formed" +
                          (has_memory_ ? ""
                                       : "\nOr another process came as rank " + std::to_string(meeting_.rank) +
                                             " before this one."),
                      {0});
      if (message->bytes[0] == refusal) throw refusal_in(message->bytes.substr(1));
      return std::move(*message);
    }
  }

  Failure late(const char* what) const {
    return Failure(FailureKind::timeout,
                   "after " + shown_seconds(meeting_.timeout) + ", " + what + " (group '" + meeting_.name + "')", {0});
  }

  static Failure no_host() {
    return Failure(FailureKind::engine, "what is at rank 0's address said what rank 0 would not");
  }

  const Meeting& meeting_;
  const std::function<void()>& check_interrupted_;
  std::chrono::time_point<Clock, std::chrono::duration<double>> deadline_;
  const std::vector<MeetingAddress> addresses_;
  std::vector<Clock::time_point> from_;  // when it may go to each
  std::size_t at_ = 0;                   // to which of them it went last
  std::string other_job_;                // whose rank 0 it has met there, as it tells of it
  bool may_be_at_another_job_ = false;   // while it looks for its job elsewhere, too
  StallWarning arrival_warning_{Clock::now()};
  bool has_memory_ = false;  // so that all have come
  Descriptor socket_;
};

}  // namespace

void meet(const Meeting& meeting, const std::function<void()>& check_interrupted, const Join& join) {
  fault_point("meeting");
  const Join join_or_say_why = [&join](Encounter&& encounter) {
    try {
      join(std::move(encounter));
    } catch (const std::bad_alloc&) {
      throw Failure(FailureKind::memory, "not enough memory to join");
    }
  };
  if (meeting.rank == 0)
    RendezvousHost(meeting, check_interrupted).gather(join_or_say_why);
  else
    Guest(meeting, check_interrupted).visit(join_or_say_why);
}

}  // namespace shim
