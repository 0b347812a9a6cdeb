#include "crossing/crossing.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "crossing/frames.hpp"
#include "group/descriptions.hpp"
#include "platform/threads.hpp"

namespace shim {
namespace {

constexpr auto until_word_of_loss = std::chrono::seconds(5);    // till a broken wire is no sign of a lost rank
constexpr auto pause = std::chrono::microseconds(200);          // of the thread that carries on
constexpr auto for_own_frames = std::chrono::milliseconds(20);  // before a thread sends what the others do not take

Failure untold(const std::string& why) {
  return Failure(FailureKind::engine,
                 "a refused call could not be told of: " + why + "\nThe group can no longer be used.");
}

}  // namespace

Crossing::Crossing(Group& group, std::vector<std::vector<int>> hosts, std::vector<std::shared_ptr<Wire>> wires,
                   std::uint64_t id)
    : group_(group),
      hosts_(std::move(hosts)),
      wires_(std::move(wires)),
      id_(id),
      bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      has_come_(hosts_.size()),
      frames_(hosts_.size()),
      broken_since_(hosts_.size()) {
  if (!bell_) throw Failure(FailureKind::engine, std::string("no bell can be had: ") + std::strerror(errno));
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (wires_[host] != nullptr) wires_[host]->serve(id_, [this] { ring(); });
    if (wires_[host] == nullptr) here_ = hosts_[host];
  }
}

Crossing::~Crossing() {
  stop({});
  for (const std::shared_ptr<Wire>& wire : wires_)
    if (wire != nullptr) wire->forget(id_);
}

bool Crossing::exchange(std::uint64_t sequence) {
  const std::unique_lock turn(turn_, std::try_to_lock);
  if (!turn) return false;
  if (done_ >= sequence) return true;
  if (sent_ < sequence) {
    if (!have_arrived_here(sequence)) return false;
    send_to_all(sequence);
  }
  bool has_all = true;
  bool is_sent = true;
  try {
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      if (wires_[host] == nullptr) continue;
      has_all = take_from(host, sequence) && has_all;
      is_sent = wires_[host]->flush(frames_[host]) && is_sent;
    }
  } catch (const Failure& failure) {  // it has been taken, and would be waited for again
    group_.fail(failure);
  }
  if (!has_all) return false;
  if (!is_sent && !leaves_rest_to_thread()) return false;
  done_ = sequence;
  awaits_hosts_.store(false);
  for (const int rank : here_) group_.ring_bell(rank);
  return true;
}

// One that is about to give the operation up has not.
bool Crossing::have_arrived_here(std::uint64_t sequence) const {
  return std::ranges::all_of(here_,
                             [&](int rank) { return group_.arrival(rank, sequence).sequence.load() == sequence; });
}

void Crossing::send_to_all(std::uint64_t sequence) {
  for (std::size_t host = 0; host < hosts_.size(); ++host)
    if (wires_[host] != nullptr)
      frames_[host] = wires_[host]->send(id_, packed_arrivals(group_, here_, hosts_[host], sequence));
  has_come_.assign(hosts_.size(), false);
  complete_since_ = {};
  sent_ = sequence;
  awaits_hosts_.store(true);
}

// All is here, but what goes from here is not taken yet: by a host that is busy elsewhere, perhaps for long.
bool Crossing::leaves_rest_to_thread() {
  const auto now = Clock::now();
  if (complete_since_ == Clock::time_point{}) complete_since_ = now;
  if (now - complete_since_ < for_own_frames) return false;
  for (const std::shared_ptr<Wire>& wire : wires_)
    if (wire != nullptr) wire->flush_in_background();
  return true;
}

// Whether nothing more is to come from that host.
bool Crossing::take_from(std::size_t host, std::uint64_t sequence) {
  Wire& wire = *wires_[host];
  if (has_come_[host]) return true;
  const bool was_broken = wire.is_broken();
  if (const std::optional<std::string> frame = wire.take(id_)) {
    take_arrivals(group_, hosts_[host], here_, sequence, *frame);
    has_come_[host] = true;
    return true;
  }
  if (was_broken) miss(host, sequence);
  return false;
}

// What ended it may be the loss of a rank, of which the group will hear, and tell.
void Crossing::miss(std::size_t host, std::uint64_t sequence) {
  const auto now = Clock::now();
  if (broken_since_[host] == Clock::time_point{}) broken_since_[host] = now;
  if (now - broken_since_[host] < until_word_of_loss) return;
  group_.fail(Failure(FailureKind::engine,
                      "operation " + std::to_string(sequence) + " of the group: the connection to the host of " +
                          rank_label(group_, hosts_[host].front()) + " has failed: " + wires_[host]->problem() +
                          "\nThe group can no longer be used."));
}

bool Crossing::sleep(std::chrono::milliseconds longest) {
  if (!awaits_hosts_.load()) return false;
  std::vector<pollfd> files{{bell_.get(), POLLIN, 0}};
  is_asleep_.store(true);  // from now on who reads a frame for this group rings
  bool is_there = false;
  {
    const std::lock_guard turn(turn_);
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      Wire* const wire = wires_[host].get();
      if (wire == nullptr || wire->is_broken()) continue;
      const bool is_awaited = !has_come_[host];  // what a host says of the next operation is no reason to look
      const bool is_sent = wire->flush(frames_[host]);
      is_there = is_there || (is_awaited && wire->has(id_));
      if (is_awaited || !is_sent)
        files.push_back({wire->file(), static_cast<short>((is_awaited ? POLLIN : 0) | (is_sent ? 0 : POLLOUT)), 0});
    }
  }
  ::poll(files.data(), files.size(), is_there ? 0 : static_cast<int>(longest.count()));
  is_asleep_.store(false);
  if ((files.front().revents & POLLIN) != 0) {
    std::uint64_t rings = 0;
    [[maybe_unused]] const ssize_t count = ::read(bell_.get(), &rings, sizeof(rings));
  }
  return true;
}

void Crossing::ring() {
  if (!is_asleep_.load()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t count = ::write(bell_.get(), &one, sizeof(one));
}

void Crossing::carry_on(std::uint64_t sequence) {
  if (late_.joinable()) late_.join();  // of an operation before, which is over
  is_carried_on_.store(true);
  try {
    late_ = begin_thread("shim refusal", [this, sequence] {
      try {
        while (!exchange(sequence) && !stops_.load() && (group_.is_usable() || group_.has_left()))
          std::this_thread::sleep_for(pause);
      } catch (const Failure& failure) {
        group_.record(failure);
      } catch (const std::exception& cause) {  // no memory
        group_.record(untold(cause.what()));
      }
      is_carried_on_.store(false);
    });
  } catch (const Failure& failure) {
    is_carried_on_.store(false);
    group_.record(untold(failure.what()));
  }
}

void Crossing::stop(std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  while (is_carried_on_.load() && Clock::now() < until) std::this_thread::sleep_for(pause);
  stops_.store(true);
  if (late_.joinable()) late_.join();
}

}  // namespace shim
