// Ranks of several hosts in one process: those of each share memory, and their leaders are connected by wires.
#pragma once

#include "crossing/crossing.hpp"

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "group/mirror.hpp"
#include "tests/ranks.hpp"

namespace shim::tests {

inline constexpr std::uint64_t id = 7;
inline constexpr std::uint64_t seed = 42;

using Hosts = std::vector<std::vector<int>>;

inline int size_of(const Hosts& hosts) {
  int size = 0;
  for (const std::vector<int>& host : hosts) size += static_cast<int>(host.size());
  return size;
}

// Takes arrivals by a crossing, and tells the other ranks all else at once.
class Words final : public Carrier {
 public:
  Words(Group& group, const std::vector<std::unique_ptr<Words>>& all) : group_(group), all_(all) {}

  std::unique_ptr<Crossing> crossing;

  bool exchange(std::uint64_t sequence) override { return crossing && crossing->exchange(sequence); }
  void refused(std::uint64_t sequence) override {
    if (crossing) crossing->carry_on(sequence);
  }
  bool sleep(std::chrono::milliseconds longest) override { return crossing && crossing->sleep(longest); }
  void ring() override {
    if (crossing) crossing->ring();
  }
  void told_place(std::uint64_t sequence, std::string_view place) override {
    for (const auto& other : all_) take_place(other->group_, group_.rank(), sequence, place);
  }
  void ask_all() override {}
  void ended(RankState state, int cause, const std::string& reason, bool has_left, bool) override {
    for (const auto& other : all_)
      if (!other->group_.is_here(group_.rank()))
        other->group_.take_ending(group_.rank(), state, cause, reason, has_left);
  }
  std::string whereabouts(int) override { return "is somewhere"; }
  std::string circle() override { return {}; }

 private:
  Group& group_;
  const std::vector<std::unique_ptr<Words>>& all_;
};

using Wires = std::vector<std::vector<std::shared_ptr<Wire>>>;

// Each host's wires to the others.
inline Wires wires_between(std::size_t hosts) {
  Wires wires(hosts, std::vector<std::shared_ptr<Wire>>(hosts));
  for (std::size_t one = 0; one < hosts; ++one)
    for (std::size_t other = one + 1; other < hosts; ++other) {
      int ends[2];
      CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
      const int little =
          4096;  // so that frames go in pieces, and one end may have all of the other's before its own has gone
      for (const int end : ends) CHECK(::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)) == 0);
      wires[one][other] = std::make_shared<Wire>(Descriptor(ends[0]));
      wires[other][one] = std::make_shared<Wire>(Descriptor(ends[1]));
    }
  return wires;
}

// Runs `body` as every rank, each in a thread of its own.
inline void on_hosts(const Hosts& hosts, const Wires& wires, const std::function<void(Rank&)>& body,
                     double timeout = 20) {
  const int size = size_of(hosts);
  std::vector<std::unique_ptr<Rank>> ranks(static_cast<std::size_t>(size));
  std::vector<std::unique_ptr<Words>> words;
  for (const std::vector<int>& here : hosts) {
    const auto memory = std::make_shared<Segment>(memory_across(size, true, seed));
    for (const int rank : here)
      ranks[static_cast<std::size_t>(rank)] = std::make_unique<Rank>(rank, size, timeout, memory, here);
  }
  for (const auto& rank : ranks) begin_with(first_number(), *rank);
  for (const auto& rank : ranks) {
    words.push_back(std::make_unique<Words>(rank->group(), words));
    rank->group().carrier = words.back().get();
  }
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const auto leader = static_cast<std::size_t>(hosts[host].front());
    words[leader]->crossing = std::make_unique<Crossing>(ranks[leader]->group(), hosts, wires[host], id);
  }
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, i = static_cast<std::size_t>(rank)] {
      try {
        body(*ranks[i]);
      } catch (const std::exception& error) {
        errors[i] = error.what();
        ranks[i]->group().leave();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : words) one->crossing.reset();
  for (const auto& rank : ranks) rank->group().carrier = nullptr;  // the others may be gone
  for (const std::string& error : errors) CHECK_EQUAL(error, std::string());
}

inline void on_hosts(const Hosts& hosts, const std::function<void(Rank&)>& body, double timeout = 20) {
  on_hosts(hosts, wires_between(hosts.size()), body, timeout);
}

}  // namespace shim::tests
