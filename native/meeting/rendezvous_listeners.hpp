// Where the ranks of a group look for each other when several jobs have one key: at addresses of the processes that
// started them first, and at the key's own.
#pragma once

#include <poll.h>

#include <chrono>
#include <string>
#include <vector>

#include "meeting/rendezvous.hpp"
#include "platform/failure.hpp"

namespace shim {

// Before a rank that can prove to which job it belongs, or may soon be able to, meets one that cannot; half the timeout
// where that is shorter.
inline constexpr double own_job_patience = 5;  // seconds
// Before a rank 0 and a rank that take each other for ranks of two jobs, and wait in vain for their own, end that; a
// quarter of the timeout where that is shorter.
inline constexpr double other_job_patience = 30;  // seconds
std::chrono::steady_clock::duration duration_of(double seconds);
// Where rank 0 listens and the others look for it, in the order in which they do.
struct MeetingAddress {
  enum class Of { parent, process, outer_job, key };
  std::string text;
  Of of;
};
std::vector<MeetingAddress> addresses_of(const Meeting& meeting);
// Whether a rank of that origin looks for its job elsewhere first, and rank 0 can do without the address.
bool knows_better(const Origin& origin, const MeetingAddress& address);
// How long this rank leaves the address alone.
std::chrono::steady_clock::duration delay_at(const MeetingAddress& address, const Meeting& meeting);

// Whether the two have to be taken for ranks of two jobs, the only place where that is decided. A rank 0 whose children
// may be its other ranks counts as one with proof here, as else it could meet another job's rank before they come.
bool are_of_two_jobs(const Origin& one, const Origin& other);
// "process 12, which process 3 started"; empty where the key is the job's alone.
std::string description_of(const Origin& origin);
// Tells the user that this rank has found `rank` of another job: `who`.
void warn_of_another_job(const Meeting& meeting, const std::string& rank, const std::string& who);

// What both are told: this rank 0, and a `rank` of another job with that origin.
Failure wait_in_vain(const Meeting& meeting, int rank, const Origin& origin);
// What both are told, and all that came to them.
Failure two_hosts(const Meeting& meeting, const Origin& other = {});

// The sockets at which rank 0 listens.
class Listeners {
 public:
  using Clock = std::chrono::steady_clock;

  Listeners(const Meeting& meeting, Clock::time_point deadline);

  // Tries to open those that are not. Where another rank 0 listens, one of the two gives way. Throws two_hosts() where
  // neither can, and why the other one has refused this.
  void open();
  void close() { listeners_.clear(); }
  std::size_t size() const { return listeners_.size(); }
  // Who waits at one; an empty descriptor where nobody does, or it is not open.
  Descriptor accept_at(std::size_t listener) const;
  // Whether any is soon to be tried again.
  bool append_to(std::vector<pollfd>& entries) const;
  // Who has proof of its ranks, or has started them itself, needs no address that others may have, too.
  bool may_give_way_at(std::size_t listener) const { return may_give_way_at(listeners_[listener].address); }
  void give_way_at(std::size_t listener);
  // A child of this process has come as a rank: the others will come to this process's own address, too.
  void set_has_started_others() { has_started_others_ = true; }

 private:
  struct Listener {
    MeetingAddress address;
    Descriptor socket;
    Descriptor rival;  // the other rank 0, which has the address
    Clock::time_point next_try;
    Clock::time_point in_use_since;
  };

  bool may_give_way_at(const MeetingAddress& address) const;
  void try_to_open(Listener& listener);

  const Meeting& meeting_;
  const Clock::time_point deadline_;
  std::vector<Listener> listeners_;
  bool has_started_others_ = false;
  Clock::time_point children_until_;  // before which it claims no address that another rank 0 has
};

}  // namespace shim
