// A rank's membership of a group: how Python's processes join one, and leave it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/calls/python_carrier.hpp"
#include "meeting/rendezvous.hpp"
#include "progress/progress.hpp"

namespace shim::bindings {

// What a rank of a group across hosts knows of these.
struct Across {
  std::vector<std::vector<int>> hosts;       // the group's ranks by host
  std::vector<std::shared_ptr<Wire>> wires;  // to the other hosts' leaders, where this rank leads its own
  std::uint64_t hash_seed;                   // the same on all ranks
  std::vector<int> pids;                     // by rank, of those on other hosts that are emulated here; else 0
};

// Lives as long as the group or any work of it. In a forked child it is never destroyed: it belongs to the parent.
struct Member {
  Member(std::string name, std::vector<int> world_ranks, int rank, double timeout, std::shared_ptr<Segment> segment,
         const std::vector<int>& here)
      : group(std::move(name), std::move(world_ranks), rank, timeout, std::move(segment), here), progress(group) {}
  ~Member() { close(); }
  // Meets the other ranks. Throws Failure(peer_lost) when one of them goes from `parent`, the world, meanwhile, and
  // Failure(mismatch) when they wait for this one elsewhere, which then refuses what they wait in.
  static std::shared_ptr<Member> join(const Meeting& meeting, Member* parent);
  // Joins ranks of several hosts, of which it meets those of its own; `carrier` takes its words to the others.
  static std::shared_ptr<Member> across(const Meeting& meeting, const Across& across, nanobind::object carrier);
  // Sets `member`, without the GIL. Where it throws, what it has made is left there, to be destroyed with the GIL. The
  // `identity` is the group's own, that of its file of memory unless it is given; `here` is as of a Group.
  static void make(std::shared_ptr<Member>& member, const Meeting& meeting, Encounter&& encounter,
                   std::optional<std::uint64_t> identity = std::nullopt, const std::vector<int>& here = {});
  // Says to the others why, if there is something to say.
  // Tells the others, and that of a refused call before.
  void leave(const std::string& why);
  void close(const std::string& why = {});

  std::unique_ptr<PythonCarrier> carrier;  // where the ranks share no memory
  Group group;
  Progress progress;
};

}  // namespace shim::bindings
