// How the ranks of a group meet: they exchange file descriptors over an abstract unix socket.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "group/shared_layout.hpp"
#include "machine/machine.hpp"
#include "platform/segment.hpp"

namespace shim {

// How a rank shows to which job it belongs, where others may use the job's key too. Processes are named by their number
// and their pid namespace.
struct Origin {
  std::string process;                   // this one; empty where the key is the job's alone
  std::string parent;                    // the one that started it; empty where that is no help
  bool is_proven = false;                // that the parent started the job's other ranks too, or is one of them
  bool may_have_started_others = false;  // this rank 0 has children, of which only those that come show who they are
  std::string outer_job;                 // of which this process is a rank, or descends from one; empty without
};

// The group on several hosts of which those that meet are the ranks of one.
struct Wider {
  int ranks;                // of it
  std::uint64_t hash_seed;  // the same on all hosts
};

struct Meeting {
  std::string key;               // names the group on this host; only its members know it, or ranks of another origin
  std::string name;              // of the group, for messages
  std::vector<int> world_ranks;  // must be the same on all ranks
  int rank = 0;
  double timeout = 0;                        // seconds
  Measurements measurements = std::nullopt;  // by which rank 0 chooses the group's thresholds
  Origin origin = {};
  std::string engine = {};         // what carries the group's collectives out, in one line; the same on all ranks
  std::string engine_reason = {};  // why that was chosen, for who asks
  std::optional<Wider> wider = std::nullopt;

  SharedLayout layout() const {
    return wider ? SharedLayout(wider->ranks, Reach::several_hosts)
                 : SharedLayout(static_cast<int>(world_ranks.size()));
  }
};

struct Encounter {
  Segment segment;
  std::vector<Descriptor> pidfds;  // by group rank; the caller's own is empty
};

// Makes of an encounter what the rank needs. It may throw.
using Join = std::function<void(Encounter&&)>;

// Meets the other ranks of the group. Rank 0 makes the memory, listens and hands it out; the others come to it. Returns
// when `join` has returned on all ranks, and throws on all of them where it throws a Failure on one.
// `check_interrupted` is called a few times a second and may throw. Peers must belong to the same user.
// Throws Failure: timeout with the ranks that did not come, mismatch when ranks differ about the group (on all of
// them), peer_lost when one dies on the way, state when two processes are rank 0 of a group with this key (on all of
// them, too; where they differ about the group, on the later one alone). Ranks that are proven to be of two jobs do not
// meet: each of them goes on waiting for its own.
void meet(const Meeting& meeting, const std::function<void()>& check_interrupted, const Join& join);

}  // namespace shim
