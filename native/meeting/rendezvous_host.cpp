#include "meeting/rendezvous_host.hpp"

#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>

#include "meeting/group_memory.hpp"
#include "meeting/rendezvous_messages.hpp"
#include "platform/fault_points.hpp"
#include "platform/process.hpp"

namespace shim {
namespace {

constexpr auto hello_patience = std::chrono::seconds(5);
constexpr std::size_t most_newcomers = 1024;  // than the largest group has ranks; beyond, the longest silent one goes

bool has_event(int fd, short events) {
  pollfd entry{fd, events, 0};
  return ::poll(&entry, 1, 0) > 0;
}

std::string list_of(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

}  // namespace

RendezvousHost::RendezvousHost(const Meeting& meeting, const std::function<void()>& check_interrupted)
    : meeting_(meeting),
      check_interrupted_(check_interrupted),
      deadline_(Clock::now() +
                std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(meeting.timeout))),
      origin_(meeting.origin),
      listeners_(meeting, deadline_),
      guests_(meeting.world_ranks.size()) {}

void RendezvousHost::gather(const Join& join) {
  try {
    gather_all(join);
  } catch (const Failure& failure) {
    send_away(is_joining_ ? could_not_join(0, failure) : failure);
    throw;
  } catch (const std::exception& error) {  // Ctrl-C, for one
    send_away(could_not_join(0, Failure(FailureKind::peer_lost, error.what())));
    throw;
  }
}

void RendezvousHost::send_away(const Failure& failure) {
  for (const Guest& guest : guests_) refuse(guest.socket, failure);
  for (const Newcomer& newcomer : newcomers_) refuse(newcomer.socket, failure);
  try {
    for (std::size_t listener = 0; listener < listeners_.size(); ++listener)
      while (const Descriptor late = listeners_.accept_at(listener)) refuse(late, failure);
  } catch (const Failure&) {
    // Who was not let in hears nothing, and that rank 0 has gone.
  }
}

void RendezvousHost::gather_all(const Join& join) {
  while (missing().size() > 0) admit_one();
  newcomers_.clear();
  listeners_.close();  // before anybody can be back for the next group with this key
  is_joining_ = true;
  Segment segment = make_memory();
  fault_point("welcome");
  for (std::size_t rank = 1; rank < guests_.size(); ++rank) send_welcome(rank, segment);
  join({std::move(segment), take_pidfds()});
  is_joining_ = false;
  deadline_ = std::max(deadline_, Clock::now() + join_patience);
  for (std::size_t rank = 1; rank < guests_.size(); ++rank) hear_joined(rank);
  for (std::size_t rank = 1; rank < guests_.size(); ++rank)
    send_message(guests_[rank].socket, std::string(1, all_joined), {});
}

void RendezvousHost::give_way(std::size_t listener) {
  listeners_.give_way_at(listener);
  for (Guest& guest : guests_) {
    if (!guest.socket || guest.listener != listener) continue;
    refuse(guest.socket, two_hosts(meeting_));
    guest = Guest();
  }
  std::erase_if(newcomers_, [listener](const Newcomer& newcomer) { return newcomer.listener == listener; });
}

std::vector<int> RendezvousHost::missing() const {
  std::vector<int> ranks;
  for (std::size_t rank = 1; rank < guests_.size(); ++rank)
    if (!guests_[rank].socket) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

void RendezvousHost::admit_one() {
  check_interrupted_();
  if (Clock::now() > deadline_) throw some_are_missing();
  if (warning_.is_due(Clock::now()))
    StallWarning::write("rank 0", "for these ranks of group '" + meeting_.name + "' to come: " + list_of(missing()),
                        meeting_.timeout);
  for (std::size_t rank = 1; rank < guests_.size(); ++rank) check_alive(rank);
  listeners_.open();
  if (!somebody_moves()) return;
  for (std::size_t listener = 0; listener < listeners_.size(); ++listener) {
    Descriptor socket = listeners_.accept_at(listener);
    if (!socket) continue;
    if (newcomers_.size() == most_newcomers) newcomers_.erase(newcomers_.begin());
    newcomers_.push_back({std::move(socket), Clock::now(), listener});
  }
  hear_newcomers();
}

// Waits for somebody to come, or one of those that have come to speak.
bool RendezvousHost::somebody_moves() const {
  std::vector<pollfd> entries;
  const int slice = listeners_.append_to(entries) ? static_cast<int>(rendezvous_pause.count()) : rendezvous_slice_ms;
  for (const Newcomer& newcomer : newcomers_) entries.push_back({newcomer.socket.get(), POLLIN, 0});
  return ::poll(entries.data(), entries.size(), slice) > 0;
}

// Each says who it is, which on a busy machine may take it a while; one that says nothing keeps nobody waiting.
void RendezvousHost::hear_newcomers() {
  for (std::size_t i = 0; i < newcomers_.size();) {
    std::optional<Message> message = receive_message(newcomers_[i].socket, 0);
    const bool is_silent = !message && Clock::now() > newcomers_[i].came + hello_patience;
    if (!message && !is_silent) {
      ++i;
      continue;
    }
    Descriptor socket = std::move(newcomers_[i].socket);
    const std::size_t listener = newcomers_[i].listener;
    newcomers_.erase(newcomers_.begin() + static_cast<std::ptrdiff_t>(i));
    if (is_silent) continue;
    try {
      admit(socket, std::move(*message), listener);
    } catch (const Failure& failure) {
      refuse(socket, failure);
      throw;
    }
  }
}

Failure RendezvousHost::some_are_missing() const {
  return Failure(FailureKind::timeout,
                 "after " + shown_seconds(meeting_.timeout) + ", these ranks of group '" + meeting_.name +
                     "' had not come: " + list_of(missing()) + other_jobs_,
                 missing());
}

void RendezvousHost::admit(Descriptor& socket, Message&& message, std::size_t listener) {
  if (message.files.size() > 1) return;
  const std::optional<Hello> hello = hello_in(message.bytes);
  if (!hello || (!hello->key.empty() && hello->key != meeting_.key)) return;
  if (hello->rank == 0) return hear_rival(socket, *hello, listener);
  if (!origin_.process.empty() && hello->origin.parent == origin_.process) {
    origin_.is_proven = true;
    listeners_.set_has_started_others();
    turn_away_guests_of_other_jobs();
  }
  if (are_of_two_jobs(origin_, hello->origin)) return turn_away(socket, hello->rank, hello->origin);
  check_identity(hello->rank, hello->identity);
  if (message.files.empty()) {  // it has no descriptor for its pidfd, and says so next
    const std::optional<Message> why = hear(socket);
    throw why_not(static_cast<std::size_t>(hello->rank), why ? why->bytes : "");
  }
  guests_[static_cast<std::size_t>(hello->rank)] = {std::move(socket), std::move(message.files[0]), hello->processors,
                                                    hello->origin, listener};
}

void RendezvousHost::turn_away(const Descriptor& socket, int rank, const Origin& origin) {
  const auto since = turned_away_.try_emplace(origin.process, Clock::now()).first->second;
  if (Clock::now() > since + duration_of(std::min(other_job_patience, meeting_.timeout / 4)))
    throw wait_in_vain(meeting_, rank, origin);
  if (other_jobs_.empty()) warn_of_another_job(meeting_, "rank " + std::to_string(rank), description_of(origin));
  other_jobs_ = "\n" + description_of(origin) + ", came as rank " + std::to_string(rank) +
                " of another job. Where the two are of one, set SHIM_JOB_NAME to the same name on all ranks.";
  send_message(socket, another_job + description_of(meeting_.origin), {});
}

// They came while rank 0 had no proof of its own job.
void RendezvousHost::turn_away_guests_of_other_jobs() {
  for (std::size_t rank = 1; rank < guests_.size(); ++rank) {
    Guest& guest = guests_[rank];
    if (!guest.socket || !are_of_two_jobs(origin_, guest.origin)) continue;
    turn_away(guest.socket, static_cast<int>(rank), guest.origin);
    guest = Guest();
  }
}

void RendezvousHost::hear_rival(const Descriptor& socket, const Hello& hello, std::size_t listener) {
  if (hello.identity != identity_of(meeting_))
    return refuse(socket, two_hosts(meeting_, hello.origin));  // another job's
  if (!listeners_.may_give_way_at(listener)) throw two_hosts(meeting_, hello.origin);
  give_way(listener);
}

std::optional<Message> RendezvousHost::hear(const Descriptor& socket) const {
  const auto patience = Clock::now() + hello_patience;
  for (;;) {
    std::optional<Message> message = receive_message(socket, rendezvous_slice_ms);
    if (message || Clock::now() > patience) return message;
    check_interrupted_();
  }
}

void RendezvousHost::check_identity(int rank, const std::string& theirs) const {
  const std::string mine = identity_of(meeting_);
  if (theirs != mine)
    throw Failure(FailureKind::mismatch, "ranks differ about group '" + meeting_.name + "'\n  rank 0: " + mine +
                                             "\n  rank " + std::to_string(rank) + ": " + theirs);
  if (static_cast<std::size_t>(rank) >= guests_.size())
    throw Failure(FailureKind::mismatch, "a process came as rank " + std::to_string(rank) + " of group '" +
                                             meeting_.name + "', which has " + std::to_string(guests_.size()));
  if (guests_[static_cast<std::size_t>(rank)].socket)
    throw Failure(FailureKind::mismatch,
                  "two processes came as rank " + std::to_string(rank) + " of group '" + meeting_.name + "'");
}

void RendezvousHost::check_alive(std::size_t rank) const {
  const Guest& guest = guests_[rank];
  if (!guest.socket) return;
  if (const std::optional<Message> said = receive_message(guest.socket, 0)) throw why_not(rank, said->bytes);
  if (has_event(guest.pidfd.get(), POLLIN)) throw why_not(rank, "");
}

void RendezvousHost::send_welcome(std::size_t rank, const Segment& segment) const {
  const Descriptor mine = pidfd_of_this_process();
  send_message(guests_[rank].socket, std::string(1, welcome), {segment.file()});
  for (std::size_t first = 0; first < guests_.size(); first += max_files) {
    std::vector<int> pidfds;
    for (std::size_t peer = first; peer < std::min(first + max_files, guests_.size()); ++peer)
      pidfds.push_back(peer == 0 ? mine.get() : guests_[peer].pidfd.get());
    send_message(guests_[rank].socket, std::string(1, files), pidfds);
  }
}

void RendezvousHost::hear_joined(std::size_t rank) const {
  StallWarning warning(Clock::now());
  for (;;) {
    const std::optional<Message> message = receive_message(guests_[rank].socket, rendezvous_slice_ms);
    if (message && message->bytes == std::string(1, joined)) return;
    if (message) throw why_not(rank, message->bytes);
    check_interrupted_();
    if (warning.is_due(Clock::now()))
      StallWarning::write(
          "rank 0", "for rank " + std::to_string(rank) + " of group '" + meeting_.name + "', which has come, to join",
          meeting_.timeout);
    if (Clock::now() > deadline_)
      throw Failure(FailureKind::timeout,
                    "after " + shown_seconds(meeting_.timeout) + ", rank " + std::to_string(rank) + " of group '" +
                        meeting_.name + "' had come, and not joined",
                    {static_cast<int>(rank)});
  }
}

// Why a guest does not join that said this last, or went without a word.
Failure RendezvousHost::why_not(std::size_t rank, const std::string& said) const {
  const std::string who = "rank " + std::to_string(rank);
  const std::vector<int> itself = {static_cast<int>(rank)};
  if (said.empty())
    return Failure(FailureKind::peer_lost, who + " went while group '" + meeting_.name + "' was being formed", itself);
  if (said[0] != refusal) return Failure(FailureKind::engine, who + " said what no rank would", itself);
  const Failure reason = refusal_in(said.substr(1));
  // A guest that came earlier than rank 0 is late earlier, too.
  return reason.kind == FailureKind::timeout && !missing().empty() ? some_are_missing() : could_not_join(rank, reason);
}

Failure RendezvousHost::could_not_join(std::size_t rank, const Failure& reason) const {
  return Failure(reason.kind,
                 "rank " + std::to_string(rank) + " could not join group '" + meeting_.name + "': " + reason.what(),
                 reason.ranks.empty() ? std::vector<int>{static_cast<int>(rank)} : reason.ranks);
}

// When all have come: while they start, they keep the processors busy.
Segment RendezvousHost::make_memory() const {
  std::vector<Processors> by_rank = {usable_processors()};
  for (std::size_t rank = 1; rank < guests_.size(); ++rank) by_rank.push_back(guests_[rank].processors);
  if (meeting_.wider) return memory_across(meeting_.wider->ranks, are_crowded(by_rank), meeting_.wider->hash_seed);
  const int ranks = static_cast<int>(guests_.size());
  const int together = static_cast<int>(count_together(by_rank));
  return memory_for(ranks, thresholds_for(this_machine(meeting_.measurements), ranks, together), are_crowded(by_rank));
}

std::vector<Descriptor> RendezvousHost::take_pidfds() {
  std::vector<Descriptor> pidfds;
  for (Guest& guest : guests_) pidfds.push_back(std::move(guest.pidfd));
  return pidfds;
}

}  // namespace shim
