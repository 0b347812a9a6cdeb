#include "reports/inquiries.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "group/group.hpp"
#include "group/watcher.hpp"
#include "platform/failure.hpp"
#include "platform/process.hpp"
#include "platform/socket_messages.hpp"
#include "platform/threads.hpp"
#include "reports/process_facts.hpp"

namespace shim {
namespace {

using Clock = std::chrono::steady_clock;

// A process answers two questions, each at an address of its own: what it waits for, which takes microseconds and is
// asked again and again, and everything, which makes it describe its groups and start a thread.
const std::string suffix_of_wait_address = "-wait";

// The first answer is one message; the second is three, which begin with these letters.
constexpr char wait = 'w';
constexpr char facts = 'f';
constexpr char place = 'p';

constexpr std::size_t most_asking = 64;                             // at a time
constexpr auto pause_after_failure = std::chrono::milliseconds(5);  // as without a descriptor for who asks

struct Listening {
  std::string address;
  Descriptor socket;
  Descriptor wait_socket;
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
  if (listening != nullptr)
    for (const Descriptor* socket : {&listening->socket, &listening->wait_socket})
      if (*socket) ::close(socket->get());  // the parent's, whose address ends with it
  listening = nullptr;
  asking.clear();
  is_asking_program = false;
  telling.unlock();
}

[[maybe_unused]] const int registered = pthread_atfork(about_to_fork, has_forked, is_forked);

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
    begin_thread("shim inquiry", &tell_place_of_program).detach();
  } catch (const std::exception&) {
    is_asking_program = false;
    asking.clear();
  }
}

// Hands who asks at `door` to `answer`.
template <class Answerer>
void answer_one(Descriptor Listening::* door, const Answerer& answer) {
  const std::lock_guard lock(telling);
  if (listening == nullptr) return;
  try {
    Descriptor socket = accept_from(listening->*door, 0);
    if (!socket) return std::this_thread::sleep_for(pause_after_failure);
    answer(std::move(socket));
  } catch (const std::exception&) {
    // Who asked hears that there is no answer.
  }
}

void answer_wait() {
  answer_one(&Listening::wait_socket,
             [](const Descriptor& socket) { send_message(socket, wait_that_holds(listening->groups), {}); });
}

void answer_everything() {
  answer_one(&Listening::socket, [](Descriptor socket) {
    say(socket, wait, longest_wait(listening->groups));
    say(socket, facts, facts_of_groups(listening->groups));
    ask_program(std::move(socket));
  });
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
    fresh->wait_socket = listen_at(address + suffix_of_wait_address);
    if (!fresh->socket || !fresh->wait_socket) return;
    Watcher::instance().watch(fresh->socket, &answer_everything);
    Watcher::instance().watch(fresh->wait_socket, &answer_wait);
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

namespace {

// Hands the messages of who answers there to `take`, one after the other.
template <class Take>
void ask(const std::string& address, Clock::time_point until, const Take& take) {
  try {
    const Descriptor socket = connect_to(address);
    while (socket) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      const std::optional<Message> message =
          receive_message(socket, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
      if (!message || message->bytes.empty()) break;
      take(message->bytes);
    }
  } catch (const Failure&) {
    // It is gone, or another user's.
  }
}

}  // namespace

Answer ask_process(const std::string& address, Clock::time_point until) {
  Answer answer;
  if (address.empty()) return answer;
  ask(address, until, [&answer](const std::string& message) {
    const char what = message[0];
    const std::string text = message.substr(1);
    answer.came = true;
    if (what == wait) answer.waits = text;
    if (what == facts) answer.facts = text;
    if (what == place) answer.place = text;
    answer.told_place = what == place;
  });
  return answer;
}

std::optional<ProcessWait> ask_wait(const std::string& address, Clock::time_point until) {
  std::optional<ProcessWait> told;
  if (address.empty()) return told;
  ask(address + suffix_of_wait_address, until, [&told](const std::string& text) { told = parsed_wait(text); });
  return told;
}

}  // namespace shim
