// Notices the death of the processes of other ranks within a millisecond, and inquiries about this one.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "platform/segment.hpp"

namespace shim {

class Group;

// One thread per process polls the pidfds that the ranks handed over at rendezvous. A pidfd tells of its process's
// death also where a socket would not: when a forked helper still holds the socket open, and across pid namespaces.
class Watcher {
 public:
  static Watcher& instance();

  // Calls group.mark_lost(rank) when the process behind pidfds[rank] ends, until forget(group). Empty ones are skipped.
  // The group knows its processes. Of a process that is in several groups, one pidfd is kept.
  void watch(Group& group, std::vector<Descriptor> pidfds);
  // Afterwards `group` is not called again. Makes no watcher where there is none.
  static void forget(Group& group);
  // Calls on_readable() whenever there is something to read, until this process forks; the caller keeps `file`.
  void watch(const Descriptor& file, void (*on_readable)());

 private:
  void drop(Group& group);

  struct Membership {
    Group* group;
    int rank;
  };
  struct Process {
    Descriptor pidfd;
    int number;  // while it has one
    std::vector<Membership> memberships;
  };

  std::vector<Membership>* memberships_of(const Descriptor& pidfd, int number);

  Watcher();
  void run();

  Descriptor epoll_;
  std::map<int, void (*)()> files_;  // guarded by mutex_
  std::mutex mutex_;
  std::map<int, Process> processes_;  // by pidfd; guarded by mutex_
};

}  // namespace shim
