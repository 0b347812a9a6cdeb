// Rank 0's side of a meeting.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meeting/rendezvous.hpp"
#include "meeting/rendezvous_listeners.hpp"
#include "meeting/rendezvous_messages.hpp"
#include "platform/failure.hpp"
#include "platform/processors.hpp"
#include "platform/socket_messages.hpp"
#include "platform/stall_warning.hpp"

namespace shim {

// Listens, gives the memory to all that come, and says when all have it.
class RendezvousHost {
 public:
  RendezvousHost(const Meeting& meeting, const std::function<void()>& check_interrupted);

  // As meet() does.
  void gather(const Join& join);

 private:
  using Clock = std::chrono::steady_clock;

  struct Guest {
    Descriptor socket;
    Descriptor pidfd;
    Processors processors;
    Origin origin;
    std::size_t listener = 0;
  };

  // Who has come and not yet said who it is.
  struct Newcomer {
    Descriptor socket;
    Clock::time_point came;
    std::size_t listener;
  };

  void gather_all(const Join& join);
  void send_away(const Failure& failure);
  void give_way(std::size_t listener);
  std::vector<int> missing() const;
  void admit_one();
  bool somebody_moves() const;
  void hear_newcomers();
  void admit(Descriptor& socket, Message&& message, std::size_t listener);
  void turn_away(const Descriptor& socket, int rank, const Origin& origin);
  void turn_away_guests_of_other_jobs();
  void hear_rival(const Descriptor& socket, const Hello& hello, std::size_t listener);
  std::optional<Message> hear(const Descriptor& socket) const;
  void check_identity(int rank, const std::string& theirs) const;
  void check_alive(std::size_t rank) const;
  void send_welcome(std::size_t rank, const Segment& segment) const;
  void hear_joined(std::size_t rank) const;
  Failure why_not(std::size_t rank, const std::string& said) const;
  Failure could_not_join(std::size_t rank, const Failure& reason) const;
  Failure some_are_missing() const;
  Segment make_memory() const;
  std::vector<Descriptor> take_pidfds();

  const Meeting& meeting_;
  const std::function<void()>& check_interrupted_;
  Clock::time_point deadline_;
  StallWarning warning_{Clock::now()};
  Origin origin_;  // proven, too, once a child of this process has come
  Listeners listeners_;
  std::vector<Newcomer> newcomers_;
  std::vector<Guest> guests_;                             // by rank; rank 0's stays empty
  std::string other_jobs_;                                // whom it has turned away, as it tells of them
  std::map<std::string, Clock::time_point> turned_away_;  // since when, by process
  bool is_joining_ = false;                               // rank 0 itself, so that what fails is its own
};

}  // namespace shim
