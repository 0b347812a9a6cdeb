#include "wires/wire.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "platform/threads.hpp"

namespace shim {
namespace {

constexpr std::size_t room_bytes = 64 * 1024;  // of one read
constexpr std::size_t most_forgotten = 1024;
constexpr int between_looks = 100;  // ms

}  // namespace

Wire::Wire(Descriptor socket) : socket_(std::move(socket)), room_(room_bytes) {}

void Wire::serve(std::uint64_t group, std::function<void()> ring) {
  const std::lock_guard lock(inboxes_lock_);
  inboxes_[group].ring = std::move(ring);
}

void Wire::forget(std::uint64_t group) {
  const std::lock_guard lock(inboxes_lock_);
  inboxes_.erase(group);
  forgotten_.push_back(group);
  if (forgotten_.size() > most_forgotten) forgotten_.pop_front();
}

std::uint64_t Wire::send(std::uint64_t group, const std::string& frame) {
  const Head head{group, frame.size()};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  bytes += frame;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(sending_);
    unsent_.push_back(std::move(bytes));
    number = ++begun_;
  }
  flush(number);
  return number;
}

bool Wire::flush(std::uint64_t number) {
  const std::lock_guard lock(sending_);
  const auto is_sent = [&] { return begun_ - unsent_.size() >= number; };
  while (!unsent_.empty()) {
    const std::string& first = unsent_.front();
    const ssize_t sent = ::send(socket_.get(), first.data() + sent_of_first_, first.size() - sent_of_first_,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return is_sent();
    if (sent < 0) {  // reading tells what it was, after the last frame; the other end is not to take a part for a whole
      ::shutdown(socket_.get(), SHUT_RDWR);
      unsent_.clear();
      sent_of_first_ = 0;
      break;
    }
    sent_of_first_ += static_cast<std::size_t>(sent);
    if (sent_of_first_ < first.size()) continue;
    unsent_.pop_front();
    sent_of_first_ = 0;
  }
  return true;
}

void Wire::flush_in_background() {
  {
    const std::lock_guard lock(sending_);
    if (unsent_.empty() || is_flushed_behind_) return;
    is_flushed_behind_ = true;
  }
  try {
    begin_thread("shim wire", [wire = shared_from_this()] {
      for (;;) {
        std::uint64_t last = 0;
        {
          const std::lock_guard lock(wire->sending_);
          last = wire->begun_;
          if (wire->unsent_.empty()) {
            wire->is_flushed_behind_ = false;
            return;
          }
        }
        pollfd file{wire->file(), POLLOUT, 0};
        if (!wire->flush(last)) ::poll(&file, 1, between_looks);
      }
    }).detach();
  } catch (const std::exception&) {  // the next call goes on with it
    const std::lock_guard lock(sending_);
    is_flushed_behind_ = false;
  }
}

std::optional<std::string> Wire::take(std::uint64_t group) {
  if (std::optional<std::string> frame = next_in(group)) return frame;
  {
    const std::unique_lock turn(reading_, std::try_to_lock);
    if (!turn) return std::nullopt;  // who reads rings where it is for this group
    read();
  }
  return next_in(group);
}

std::optional<std::string> Wire::next_in(std::uint64_t group) {
  const std::lock_guard lock(inboxes_lock_);
  const auto inbox = inboxes_.find(group);
  if (inbox == inboxes_.end() || inbox->second.frames.empty()) return std::nullopt;
  std::string frame = std::move(inbox->second.frames.front());
  inbox->second.frames.pop_front();
  return frame;
}

bool Wire::has(std::uint64_t group) const {
  const std::lock_guard lock(inboxes_lock_);
  const auto inbox = inboxes_.find(group);
  return inbox != inboxes_.end() && !inbox->second.frames.empty();
}

std::string Wire::problem() const {
  const std::lock_guard lock(inboxes_lock_);
  return problem_;
}

// All that has come. Of a large frame the rest goes straight to its place.
void Wire::read() {
  while (!is_broken_.load()) {
    const bool is_in_body = have_of_head_ == sizeof(head_) && body_.size() - have_of_body_ >= room_bytes;
    std::byte* const to = is_in_body ? reinterpret_cast<std::byte*>(body_.data()) + have_of_body_ : room_.data();
    const std::size_t most = is_in_body ? body_.size() - have_of_body_ : room_.size();
    std::size_t count = 0;
    if (!read_some(to, most, count)) return;
    if (is_in_body) {
      have_of_body_ += count;
      if (have_of_body_ == body_.size()) deliver();
    } else {
      parse(to, count);
    }
    if (count < most) return;
  }
}

bool Wire::read_some(std::byte* to, std::size_t most, std::size_t& count) {
  for (;;) {
    const ssize_t received = ::recv(socket_.get(), to, most, MSG_DONTWAIT);
    if (received > 0) {
      count = static_cast<std::size_t>(received);
      return true;
    }
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    break_off(received == 0 ? "the other end has closed it" : std::strerror(errno));
    return false;
  }
}

void Wire::parse(const std::byte* bytes, std::size_t count) {
  while (count > 0) {
    std::byte* const head = reinterpret_cast<std::byte*>(&head_);
    const bool is_in_head = have_of_head_ < sizeof(head_);
    const std::size_t wanted = is_in_head ? sizeof(head_) - have_of_head_ : body_.size() - have_of_body_;
    const std::size_t taken = std::min(wanted, count);
    if (is_in_head) {
      std::memcpy(head + have_of_head_, bytes, taken);
      have_of_head_ += taken;
    } else {
      std::memcpy(body_.data() + have_of_body_, bytes, taken);
      have_of_body_ += taken;
    }
    bytes += taken;
    count -= taken;
    if (have_of_head_ < sizeof(head_)) return;
    if (is_in_head && head_.bytes > largest_frame)
      return break_off("a frame of " + std::to_string(head_.bytes) + " bytes came, more than any may have");
    if (is_in_head) body_.resize(head_.bytes);
    if (have_of_body_ == body_.size()) deliver();
  }
}

void Wire::deliver() {
  std::string frame = std::exchange(body_, {});
  have_of_head_ = have_of_body_ = 0;
  const std::lock_guard lock(inboxes_lock_);
  if (!inboxes_.contains(head_.group) && std::ranges::find(forgotten_, head_.group) != forgotten_.end()) return;
  Inbox& inbox = inboxes_[head_.group];
  inbox.frames.push_back(std::move(frame));
  if (inbox.ring) inbox.ring();
}

void Wire::break_off(const std::string& why) {
  const std::lock_guard lock(inboxes_lock_);
  problem_ = why;
  is_broken_.store(true);
  for (const auto& [group, inbox] : inboxes_)
    if (inbox.ring) inbox.ring();
}

}  // namespace shim
