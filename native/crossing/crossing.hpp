// How the leader of a host exchanges arrivals with those of the other hosts of a group.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "group/group.hpp"
#include "wires/wire.hpp"

namespace shim {

// One exchange for each operation: when all ranks of this host have arrived, their arrivals go to every other leader,
// and when those of a host come they are put where the ranks here read them. Whoever waits carries it on, one thread at
// a time; where nobody waits, as the leader's own call was refused, a thread does.
class Crossing {
 public:
  // `hosts` are the group's ranks by host, and `wires` lead to their leaders; that of this host is null. `id` is the
  // group's on all wires. The group outlives this.
  Crossing(Group& group, std::vector<std::vector<int>> hosts, std::vector<std::shared_ptr<Wire>> wires,
           std::uint64_t id);
  ~Crossing();
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

  // See Carrier.
  bool exchange(std::uint64_t sequence);
  bool sleep(std::chrono::milliseconds longest);
  void ring();
  // Carries on in a thread, which ends at the end of the exchange, or soon after stop().
  void carry_on(std::uint64_t sequence);
  // Has the thread end, if it comes to nothing within that time.
  void stop(std::chrono::milliseconds patience);

 private:
  using Clock = std::chrono::steady_clock;

  bool have_arrived_here(std::uint64_t sequence) const;
  void send_to_all(std::uint64_t sequence);
  bool leaves_rest_to_thread();
  bool take_from(std::size_t host, std::uint64_t sequence);
  void miss(std::size_t host, std::uint64_t sequence);

  Group& group_;
  std::vector<std::vector<int>> hosts_;
  std::vector<std::shared_ptr<Wire>> wires_;
  std::uint64_t id_;
  std::vector<int> here_;
  Descriptor bell_;  // an eventfd, for who sleeps
  std::atomic<bool> is_asleep_{false};

  std::mutex turn_;                    // guards the next four
  std::uint64_t sent_ = 0;             // the last operation whose arrivals have gone to the other hosts
  std::vector<bool> has_come_;         // of that, from which host
  std::vector<std::uint64_t> frames_;  // of that, to each host
  Clock::time_point complete_since_;   // when it had come from all
  std::uint64_t done_ = 0;             // the last one that is over
  std::vector<Clock::time_point> broken_since_;
  std::atomic<bool> awaits_hosts_{false};

  std::atomic<bool> stops_{false};
  std::atomic<bool> is_carried_on_{false};
  std::thread late_;
};

}  // namespace shim
