// A connection between processes of a job on two hosts, over which their groups exchange frames.
//
// Who awaits a frame reads what has come, and gives other groups theirs; a thread only sends what nobody waits with.
// Both processes have proved before that they are of the job.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "platform/segment.hpp"

namespace shim {

// Any thread may use it.
class Wire : public std::enable_shared_from_this<Wire> {
 public:
  static constexpr std::size_t largest_frame = std::size_t{1} << 30;

  explicit Wire(Descriptor socket);

  // Has `ring` called, perhaps by another thread, when a frame for the group was read. Those that came before are kept.
  void serve(std::uint64_t group, std::function<void()> ring);
  // Afterwards `ring` is not called again, and frames for the group are dropped.
  void forget(std::uint64_t group);

  // Begins to send, without waiting. Returns the frame's number, which counts all groups' from 1 on.
  std::uint64_t send(std::uint64_t group, const std::string& frame);
  // Goes on with what was begun; whether the system has all frames up to this one now, or nobody will take them.
  bool flush(std::uint64_t number);
  // Has a thread go on, until all is sent.
  void flush_in_background();
  // The next frame for the group, if it has come.
  std::optional<std::string> take(std::uint64_t group);

  bool has(std::uint64_t group) const;  // such a frame, which has been read

  // Why nothing comes any more; empty while it may.
  std::string problem() const;
  bool is_broken() const { return is_broken_.load(); }
  int file() const { return socket_.get(); }

 private:
  struct Head {
    std::uint64_t group;
    std::uint64_t bytes;
  };
  struct Inbox {
    std::deque<std::string> frames;
    std::function<void()> ring;
  };

  std::optional<std::string> next_in(std::uint64_t group);
  void read();
  bool read_some(std::byte* to, std::size_t most, std::size_t& count);
  void parse(const std::byte* bytes, std::size_t count);
  void deliver();
  void break_off(const std::string& why);

  Descriptor socket_;
  std::atomic<bool> is_broken_{false};

  std::mutex sending_;
  std::deque<std::string> unsent_;  // guarded by sending_
  std::size_t sent_of_first_ = 0;   // likewise
  std::uint64_t begun_ = 0;         // frames; likewise
  bool is_flushed_behind_ = false;  // by the thread; likewise

  std::mutex reading_;           // who has it reads
  std::vector<std::byte> room_;  // guarded by reading_, as all of a frame that has come in part
  Head head_{};
  std::size_t have_of_head_ = 0;
  std::string body_;
  std::size_t have_of_body_ = 0;

  mutable std::mutex inboxes_lock_;
  std::map<std::uint64_t, Inbox> inboxes_;  // guarded by inboxes_lock_
  std::deque<std::uint64_t> forgotten_;     // likewise; the last of them, whose frames may still be on their way
  std::string problem_;                     // likewise
};

}  // namespace shim
