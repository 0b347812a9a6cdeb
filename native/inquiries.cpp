#include "inquiries.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "absence_report.hpp"
#include "failure.hpp"
#include "group.hpp"
#include "process.hpp"
#include "socket_messages.hpp"
#include "threads.hpp"
#include "watcher.hpp"

namespace shim {
namespace {

using Clock = std::chrono::steady_clock;

// An answer is three messages, which begin with one of these letters.
constexpr char wait = 'w';
constexpr char facts = 'f';
constexpr char place = 'p';

constexpr std::size_t most_groups = 32;                             // in one answer
constexpr int most_gone = 8;                                        // ranks of a group
constexpr std::size_t most_asking = 64;                             // at a time
constexpr auto pause_after_failure = std::chrono::milliseconds(5);  // as without a descriptor for who asks

struct Told {
  Group* group;
  std::uint64_t inode;
};

struct Listening {
  std::string address;
  Descriptor socket;
  std::vector<Told> groups;
  std::uint64_t generation = process_generation();
};

std::mutex telling;
Listening* listening = nullptr;  // guarded by telling; never destroyed, as the watcher's thread outlives main()
std::atomic<std::string (*)()> teller{nullptr};
// Those who want to know where the program is; guarded by telling, and never destroyed, as above.
std::vector<Descriptor>& asking = *new std::vector<Descriptor>();
bool is_asking_program = false;  // whether a thread answers them; guarded by telling

void about_to_fork() { telling.lock(); }

void has_forked() { telling.unlock(); }

void is_forked() {
  if (listening != nullptr && listening->socket)
    ::close(listening->socket.get());  // the parent's, whose address ends with it
  listening = nullptr;
  asking.clear();
  is_asking_program = false;
  telling.unlock();
}

[[maybe_unused]] const int registered = pthread_atfork(about_to_fork, has_forked, is_forked);

std::string json(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20)
      quoted += c;
    else
      quoted += c == '\n' ? "\\n" : " ";
  }
  return quoted + '"';
}

std::string world_ranks_of(const Group& group) {
  std::string ranks;
  for (int rank = 0; rank < group.size(); ++rank)
    ranks += (rank > 0 ? "," : "") + std::to_string(group.world_rank(rank));
  return "[" + ranks + "]";
}

std::string gone_from(const Group& group) {
  std::string gone;
  int told = 0;
  for (int rank = 0; rank < group.size() && told < most_gone; ++rank) {
    if (rank == group.rank() || !group.is_gone(rank)) continue;
    gone += (told++ > 0 ? "," : "") + std::string("{\"rank\":") + std::to_string(rank) +
            ",\"how\":" + json("rank " + std::to_string(rank) + group.ending_of(rank)) +
            ",\"calls\":" + json(last_calls(group, rank)) + "}";
  }
  return "[" + gone + "]";
}

std::string facts_of(const Told& told) {
  const Group& group = *told.group;
  return "{\"inode\":" + std::to_string(told.inode) + ",\"name\":" + json(group.name()) +
         ",\"rank\":" + std::to_string(group.rank()) + ",\"ranks\":" + world_ranks_of(group) +
         ",\"timeout_ms\":" + std::to_string(static_cast<std::int64_t>(group.timeout() * 1e3)) +
         ",\"operation\":" + std::to_string(newest_call(group, group.rank())) +
         ",\"waits\":" + json(noted_wait(group, group.rank())) + ",\"calls\":" + json(last_calls(group, group.rank())) +
         ",\"gone\":" + gone_from(group) + "}";
}

// {"protocol": its version, "groups": [...], "more": how many groups were left out}
std::string facts_of_groups(const std::vector<Told>& groups) {
  std::string text = "{\"protocol\":" + std::to_string(protocol_version) + ",\"groups\":[";
  std::size_t told = 0;
  for (; told < std::min(groups.size(), most_groups); ++told) {
    const std::string next = (told > 0 ? "," : "") + facts_of(groups[told]);
    if (text.size() + next.size() + 64 > max_message_bytes) break;
    text += next;
  }
  return text + "],\"more\":" + std::to_string(groups.size() - told) + "}";
}

std::string longest_wait(const std::vector<Told>& groups) {
  std::int64_t first = 0;
  const Group* longest = nullptr;
  for (const Told& told : groups) {
    const std::int64_t since = told.group->note(told.group->rank()).waits_since.load();
    if (since == 0 || (first != 0 && since >= first)) continue;
    first = since;
    longest = told.group;
  }
  if (longest == nullptr) return {};
  return noted_wait(*longest, longest->rank()) + " (of group '" + longest->name() + "')";
}

void say(const Descriptor& socket, char what, const std::string& text) { send_message(socket, what + text, {}); }

// Answers all that ask, and those that come meanwhile. The program may not say for a long time where it is.
void tell_place_of_program() {
  std::unique_lock lock(telling);
  while (!asking.empty()) {
    lock.unlock();
    const std::string where = teller.load()();
    lock.lock();
    for (const Descriptor& socket : asking) say(socket, place, where);
    asking.clear();
  }
  is_asking_program = false;
}

// With `telling` locked.
void ask_program(Descriptor socket) {
  if (teller.load() == nullptr) return;
  if (asking.size() == most_asking) asking.erase(asking.begin());
  asking.push_back(std::move(socket));
  if (is_asking_program) return;
  is_asking_program = true;
  try {
    begin_thread(&tell_place_of_program).detach();
  } catch (const std::exception&) {
    is_asking_program = false;
    asking.clear();
  }
}

void answer_one() {
  const std::lock_guard lock(telling);
  if (listening == nullptr) return;
  try {
    Descriptor socket = accept_from(listening->socket, 0);
    if (!socket) return std::this_thread::sleep_for(pause_after_failure);
    say(socket, wait, longest_wait(listening->groups));
    say(socket, facts, facts_of_groups(listening->groups));
    ask_program(std::move(socket));
  } catch (const std::exception&) {
    // Who asked hears that there is no answer.
  }
}

std::string new_address() {
  std::random_device random;
  char address[80];
  std::snprintf(address, sizeof(address), "shim-%u-process-%d-%08x%08x", static_cast<unsigned>(::geteuid()),
                static_cast<int>(::getpid()), random(), random());
  return address;
}

void begin_to_listen() {
  auto* fresh = new Listening;
  listening = fresh;
  try {
    const std::string address = new_address();
    fresh->socket = listen_at(address);
    if (!fresh->socket) return;
    Watcher::instance().watch(fresh->socket, &answer_one);
    fresh->address = address;
  } catch (const std::exception&) {
    // It cannot be asked, and does all else.
  }
}

}  // namespace

std::string Inquiries::tell_of(Group& group, std::uint64_t inode) {
  const std::lock_guard lock(telling);
  if (listening == nullptr || listening->generation != process_generation()) begin_to_listen();
  listening->groups.push_back({&group, inode});
  return listening->address;
}

void Inquiries::forget(Group& group) {
  const std::lock_guard lock(telling);
  if (listening == nullptr || listening->generation != process_generation()) return;
  auto& groups = listening->groups;
  groups.erase(std::remove_if(groups.begin(), groups.end(), [&](const Told& told) { return told.group == &group; }),
               groups.end());
}

void set_place_teller(std::string (*function)()) { teller.store(function); }

Answer ask_process(const std::string& address, Clock::time_point until) {
  Answer answer;
  if (address.empty()) return answer;
  try {
    const Descriptor socket = connect_to(address);
    while (socket) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      const std::optional<Message> message = receive_message(socket, static_cast<int>(std::clamp(left, 0L, 60'000L)));
      if (!message || message->bytes.empty()) break;
      answer.came = true;
      const std::string text = message->bytes.substr(1);
      if (message->bytes[0] == wait) answer.waits = text;
      if (message->bytes[0] == facts) answer.facts = text;
      if (message->bytes[0] == place) answer.place = text;
      answer.told_place = message->bytes[0] == place;
    }
  } catch (const Failure&) {
    // It is gone, or another user's.
  }
  return answer;
}

}  // namespace shim
