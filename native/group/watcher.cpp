#include "group/watcher.hpp"

#include <poll.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <iterator>
#include <string>

#include "group/group.hpp"
#include "platform/failure.hpp"
#include "platform/process.hpp"
#include "platform/threads.hpp"

namespace shim {

namespace {

std::mutex making;
Watcher* made = nullptr;  // guarded by making; never destroyed, as its thread outlives main()
std::uint64_t maker = 0;  // a forked child has no such thread and makes its own watcher

template <class Text>
std::string empty_if_failed(const Text& text) {
  try {
    return text();
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

Watcher& Watcher::instance() {
  const std::lock_guard lock(making);
  if (made == nullptr || maker != process_generation()) {
    made = new Watcher();
    maker = process_generation();
  }
  return *made;
}

void Watcher::forget(Group& group) {
  Watcher* watcher = nullptr;
  {
    const std::lock_guard lock(making);
    if (maker == process_generation()) watcher = made;
  }
  if (watcher != nullptr) watcher->drop(group);
}

Watcher::Watcher() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw Failure(FailureKind::engine, std::string("cannot watch processes: ") + std::strerror(errno));
  begin_thread("shim watcher", [this] { run(); }).detach();
}

void Watcher::watch(Group& group, std::vector<Descriptor> pidfds) {
  const std::lock_guard lock(mutex_);
  for (std::size_t rank = 0; rank < pidfds.size(); ++rank) {
    const int fd = pidfds[rank].get();
    if (fd < 0) continue;
    const Membership membership{&group, static_cast<int>(rank)};
    const int number = group.peers().process_of(membership.rank);
    if (auto* memberships = memberships_of(pidfds[rank], number)) {
      memberships->push_back(membership);
      continue;
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      throw Failure(FailureKind::engine, std::string("cannot watch a process: ") + std::strerror(errno));
    processes_.emplace(fd, Process{std::move(pidfds[rank]), number, {membership}});
  }
}

// Those of the process behind `pidfd`, if it is watched already. Two processes have the same number only after one
// another: of two that are both there, it tells whether they are one.
std::vector<Watcher::Membership>* Watcher::memberships_of(const Descriptor& pidfd, int number) {
  if (number == 0) return nullptr;  // none in this namespace
  for (auto& [fd, process] : processes_) {
    if (process.number != number) continue;
    pollfd ends[] = {{fd, POLLIN, 0}, {pidfd.get(), POLLIN, 0}};
    if (::poll(ends, 2, 0) == 0) return &process.memberships;
  }
  return nullptr;
}

void Watcher::watch(const Descriptor& file, void (*on_readable)()) {
  const std::lock_guard lock(mutex_);
  files_[file.get()] = on_readable;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = file.get();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, file.get(), &event) != 0)
    throw Failure(FailureKind::engine, std::string("cannot watch a socket: ") + std::strerror(errno));
}

void Watcher::drop(Group& group) {
  const std::lock_guard lock(mutex_);
  for (auto process = processes_.begin(); process != processes_.end();) {
    std::vector<Membership>& memberships = process->second.memberships;
    std::erase_if(memberships, [&group](const Membership& membership) { return membership.group == &group; });
    if (memberships.empty()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, process->first, nullptr);
    process = memberships.empty() ? processes_.erase(process) : std::next(process);
  }
}

void Watcher::run() {
  for (;;) {
    epoll_event event{};
    if (::epoll_wait(epoll_.get(), &event, 1, -1) != 1) continue;
    std::unique_lock lock(mutex_);
    if (const auto file = files_.find(event.data.fd); file != files_.end()) {
      void (*on_readable)() = file->second;
      lock.unlock();
      on_readable();
      continue;
    }
    const auto process = processes_.find(event.data.fd);
    if (process == processes_.end()) continue;
    pollfd now{process->first, POLLIN, 0};  // another process's may have got the number since
    if (::poll(&now, 1, 0) != 1) continue;
    // Without memory to find out how, the death itself is told.
    const std::string how = empty_if_failed([&] { return how_it_ended(event.data.fd, process->second.number); });
    for (const Membership& membership : process->second.memberships)
      membership.group->mark_lost(membership.rank, empty_if_failed([&how] { return how; }));
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, process->first, nullptr);
    processes_.erase(process);
  }
}

}  // namespace shim
