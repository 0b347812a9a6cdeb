// Rank 0's side of a meeting.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "failure.hpp"
#include "processors.hpp"
#include "rendezvous.hpp"
#include "socket_messages.hpp"
#include "stall_warning.hpp"

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
  };

  // Who has come and not yet said who it is.
  struct Newcomer {
    Descriptor socket;
    Clock::time_point came;
  };

  void gather_all(const Join& join);
  void send_away(const Failure& failure);
  void open();
  std::vector<int> missing() const;
  void admit_one();
  bool somebody_moves() const;
  void hear_newcomers();
  void admit(Descriptor& socket, Message&& message);
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
  Descriptor listener_;
  std::vector<Newcomer> newcomers_;
  std::vector<Guest> guests_;  // by rank; rank 0's stays empty
  bool is_joining_ = false;    // rank 0 itself, so that what fails is its own
};

}  // namespace shim
