#include "meeting/rendezvous_listeners.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "meeting/rendezvous_messages.hpp"
#include "platform/socket_messages.hpp"

namespace shim {
namespace {

constexpr double children_patience = 30;  // seconds, for children that start slowly; or half the timeout
constexpr auto rival_patience = std::chrono::seconds(2);  // for who is rank 0 there to answer; it may be ending
constexpr auto retry_pause = std::chrono::seconds(1);     // between two tries of one who gives way

// The number of a process, without its namespace.
std::string number_in(const std::string& process) { return process.substr(0, process.find('.')); }

std::chrono::steady_clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

std::vector<MeetingAddress> addresses_of(const Meeting& meeting) {
  const std::string address = address_of(meeting.key);
  std::vector<MeetingAddress> addresses;
  if (!meeting.origin.parent.empty()) addresses.push_back({address + "-" + meeting.origin.parent, false, false});
  if (!meeting.origin.process.empty()) addresses.push_back({address + "-" + meeting.origin.process, true, false});
  addresses.push_back({address, false, true});
  return addresses;
}

std::chrono::steady_clock::duration delay_at(const MeetingAddress& address, const Meeting& meeting) {
  const bool waits =
      !address.is_own && (meeting.origin.may_have_started_others || (address.is_shared && meeting.origin.is_proven));
  return duration_of(waits ? std::min(own_job_patience, meeting.timeout / 2) : 0);
}

bool are_of_two_jobs(const Origin& one, const Origin& other) {
  const bool are_sure =
      (one.is_proven || one.may_have_started_others) && (other.is_proven || other.may_have_started_others);
  return are_sure && one.parent != other.parent && one.parent != other.process && one.process != other.parent;
}

std::string description_of(const Origin& origin) {
  if (origin.process.empty()) return "";
  return "process " + number_in(origin.process) +
         (origin.parent.empty() ? "" : ", which process " + number_in(origin.parent) + " started");
}

Failure two_hosts(const Meeting& meeting, const Origin& other) {
  const std::string mine = description_of(meeting.origin), theirs = description_of(other);
  const std::string who = mine.empty() || theirs.empty() ? "" : ": " + mine + ", and " + theirs;
  return Failure(FailureKind::state, "two processes are rank 0 of group '" + meeting.name + "' of this job" + who +
                                         "\nEither both were given rank 0, or another job on this host uses the same "
                                         "address: choose another MASTER_PORT.");
}

Listeners::Listeners(const Meeting& meeting, Clock::time_point deadline) : meeting_(meeting), deadline_(deadline) {
  if (meeting.origin.may_have_started_others)
    children_until_ = Clock::now() + duration_of(std::min(children_patience, meeting.timeout / 2));
  for (MeetingAddress& address : addresses_of(meeting)) {
    const Clock::time_point next_try = Clock::now() + delay_at(address, meeting);
    listeners_.push_back({std::move(address), {}, {}, next_try, {}});
  }
}

void Listeners::open() {
  for (Listener& listener : listeners_)
    if (!listener.socket && Clock::now() >= listener.next_try) try_to_open(listener);
}

void Listeners::try_to_open(Listener& listener) {
  if (listener.rival) {
    const std::optional<Message> answer = receive_message(listener.rival, 0);
    if (answer && !answer->bytes.empty() && answer->bytes[0] == refusal) throw refusal_in(answer->bytes.substr(1));
    if (answer) listener.rival = Descriptor();  // it gave way, has all its ranks, or is gone
  }
  if (!listener.rival && (listener.socket = listen_at(listener.address.text))) return;
  if (may_give_way_at(listener.address) || Clock::now() < children_until_) {
    listener.next_try = Clock::now() + retry_pause;
    return;
  }
  if (listener.in_use_since == Clock::time_point()) listener.in_use_since = Clock::now();
  if (Clock::now() > std::min(deadline_, listener.in_use_since + rival_patience)) throw two_hosts(meeting_);
  if (!listener.rival && (listener.rival = connect_to(listener.address.text))) introduce(listener.rival, meeting_);
}

bool Listeners::may_give_way_at(const MeetingAddress& address) const {
  return has_started_others_ ? !address.is_own : meeting_.origin.is_proven && address.is_shared;
}

void Listeners::give_way_at(std::size_t listener) {
  listeners_[listener].socket = Descriptor();
  listeners_[listener].next_try = Clock::now() + retry_pause;
}

Descriptor Listeners::accept_at(std::size_t listener) const {
  return listeners_[listener].socket ? accept_from(listeners_[listener].socket, 0) : Descriptor();
}

bool Listeners::append_to(std::vector<pollfd>& entries) const {
  bool is_contested = false;
  for (const Listener& listener : listeners_) {
    entries.push_back({listener.socket.get(), POLLIN, 0});  // poll() passes over one that is not open
    is_contested = is_contested || (!listener.socket && Clock::now() >= listener.next_try);
  }
  return is_contested;
}

}  // namespace shim
