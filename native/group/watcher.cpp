#include "group/watcher.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
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
  begin_thread([this] { run(); }).detach();
}

void Watcher::watch(Group& group, std::vector<Descriptor> pidfds) {
  const std::lock_guard lock(mutex_);
  for (std::size_t rank = 0; rank < pidfds.size(); ++rank) {
    const int fd = pidfds[rank].get();
    if (fd < 0) continue;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      throw Failure(FailureKind::engine, std::string("cannot watch a process: ") + std::strerror(errno));
    peers_.emplace(fd, Peer{&group, static_cast<int>(rank), std::move(pidfds[rank]), number_of(fd)});
  }
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
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    const bool mine = peer->second.group == &group;
    if (mine) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer->first, nullptr);
    peer = mine ? peers_.erase(peer) : std::next(peer);
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
    const auto peer = peers_.find(event.data.fd);
    if (peer == peers_.end()) continue;
    std::string how;
    try {
      how = how_it_ended(event.data.fd, peer->second.process);
    } catch (const std::exception&) {
      // Without memory to find that out, the death itself is told.
    }
    peer->second.group->mark_lost(peer->second.rank, std::move(how));
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer->first, nullptr);
    peers_.erase(peer);
  }
}

}  // namespace shim
