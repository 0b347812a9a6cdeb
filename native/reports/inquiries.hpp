// What a process tells of itself to others of the same user: to ranks that miss it, and to `shim doctor`.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "group/wait_hooks.hpp"

namespace shim {

class Group;

// Where a process says what its groups do and where its main thread is.
class Inquiries {
 public:
  // Tells of `group`, whose memory has that inode, until forget(group), and returns the address where this process
  // answers; empty where the system does not let it.
  static std::string tell_of(Group& group, std::uint64_t inode);
  static void forget(Group& group);
};

// `teller` says where the program's main thread is: "train.py:12 in step". It is called by a thread of its own, one at
// a time, and may take any time.
void set_place_teller(std::string (*teller)());

struct Answer {
  bool came = false;
  std::string waits;  // the wait that has taken longest: "has waited 12.0 s: ... (of group 'pairs')"
  std::string facts;  // of the process and its groups, as JSON; see facts_of_groups in process_facts.cpp
  bool told_place = false;
  std::string place;  // of the program's thread, if it could say so in time; empty, too, where it is in no line
};

Answer ask_process(const std::string& address, std::chrono::steady_clock::time_point until);

// A wait that holds up a process, or a thread of its program.
struct ProcessWait {
  int rank = 0;                      // in the widest of its groups, as a rule the world
  std::int64_t since = 0;            // steady nanoseconds
  Held held = Held::nothing;         // never nothing
  std::string where;                 // "in group 'world'"
  std::vector<std::string> awaited;  // addresses of those for whom it waits
};

// Nothing where the process is in no such wait, in several, or does not answer.
std::optional<ProcessWait> ask_wait(const std::string& address, std::chrono::steady_clock::time_point until);

}  // namespace shim
