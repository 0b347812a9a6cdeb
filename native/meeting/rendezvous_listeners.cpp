#include "meeting/rendezvous_listeners.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "meeting/rendezvous_messages.hpp"
#include "platform/socket_messages.hpp"
#include "platform/stall_warning.hpp"

namespace shim {
namespace {

constexpr double children_patience = 30;  // seconds, for children that start slowly; or half the timeout
constexpr auto rival_patience = std::chrono::seconds(2);  // for who is rank 0 there to answer; it may be ending
constexpr auto retry_pause = std::chrono::seconds(1);     // between two tries of one who gives way

// The number of a process, without its namespace.
std::string number_in(const std::string& process) { return process.substr(0, process.find('.')); }

}  // namespace

std::vector<MeetingAddress> addresses_of(const Meeting& meeting) {
  const std::string address = address_of(meeting.key);
  std::vector<MeetingAddress> addresses;
  const Origin& origin = meeting.origin;
  if (!origin.parent.empty()) addresses.push_back({address + "-" + origin.parent, MeetingAddress::Of::parent});
  if (!origin.process.empty()) addresses.push_back({address + "-" + origin.process, MeetingAddress::Of::process});
  if (!origin.outer_job.empty())
    addresses.push_back({address_of(meeting.key + "\n" + origin.outer_job), MeetingAddress::Of::outer_job});
  addresses.push_back({address, MeetingAddress::Of::key});
  return addresses;
}

std::chrono::steady_clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

bool knows_better(const Origin& origin, const MeetingAddress& address) {
  if (address.of == MeetingAddress::Of::key) return origin.is_proven || !origin.outer_job.empty();
  return address.of == MeetingAddress::Of::outer_job && origin.is_proven;
}

std::chrono::steady_clock::duration delay_at(const MeetingAddress& address, const Meeting& meeting) {
  const bool waits = address.of != MeetingAddress::Of::process &&
                     (meeting.origin.may_have_started_others || knows_better(meeting.origin, address));
  return duration_of(waits ? std::min(own_job_patience, meeting.timeout / 2) : 0);
}

bool are_of_two_jobs(const Origin& one, const Origin& other) {
  const bool are_sure =
      (one.is_proven || one.may_have_started_others) && (other.is_proven || other.may_have_started_others);
  const bool have_one_outer_job = !one.outer_job.empty() && one.outer_job == other.outer_job;
  return are_sure && !have_one_outer_job && one.parent != other.parent && one.parent != other.process &&
         one.process != other.parent;
}

std::string description_of(const Origin& origin) {
  if (origin.process.empty()) return "";
  return "process " + number_in(origin.process) +
         (origin.parent.empty() ? "" : ", which process " + number_in(origin.parent) + " started");
}

void warn_of_another_job(const Meeting& meeting, const std::string& rank, const std::string& who) {
  StallWarning::write_line("rank " + std::to_string(meeting.rank) + " of group '" + meeting.name + "', " +
                           description_of(meeting.origin) + ", found " + rank + " of another job: " + who +
                           "\nIt goes on waiting for its own. Where the two are of one job, set SHIM_JOB_NAME to the "
                           "same name on all ranks.");
}

Failure wait_in_vain(const Meeting& meeting, int rank, const Origin& origin) {
  return Failure(FailureKind::state,
                 "group '" + meeting.name + "' cannot be formed: " + description_of(meeting.origin) +
                     ", is rank 0 of one job, " + description_of(origin) + ", is rank " + std::to_string(rank) +
                     " of another one, and each waits in vain for its own\nWhere the two are of one job, set "
                     "SHIM_JOB_NAME to the same name on all ranks. Otherwise give each job an address of its own.");
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
  return has_started_others_ ? address.of != MeetingAddress::Of::process : knows_better(meeting_.origin, address);
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
