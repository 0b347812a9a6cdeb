// What any process may say where ranks meet: to the one that listens, to the one that comes, and to what reads their
// messages.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <thread>
#include <vector>

#include "fuzz/input.hpp"
#include "group/shared_layout.hpp"
#include "meeting/rendezvous.hpp"
#include "meeting/rendezvous_messages.hpp"
#include "platform/failure.hpp"
#include "platform/process.hpp"
#include "platform/socket_messages.hpp"

using namespace shim;
using fuzz::expect;

namespace {

constexpr double long_timeout = 10.0;  // seconds, which nobody waits for
constexpr double short_timeout = 0.3;  // where one may have gone whom the other waits for
constexpr std::size_t most_said = 6;

Descriptor some_file(std::uint8_t kind) {
  switch (kind % 4) {
    case 0:
      return pidfd_of_this_process();
    case 1:
      return Descriptor(::memfd_create("other", MFD_CLOEXEC));
    case 2:
      return Descriptor(::dup(Segment::create(SharedLayout(2).total_bytes()).file()));
    default:
      return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
}

struct Said {
  std::string text;
  std::vector<Descriptor> files;
};

std::vector<Said> conversation_in(fuzz::Input& input) {
  std::vector<Said> conversation;
  while (!input.is_empty() && conversation.size() < most_said) {
    Said& said = conversation.emplace_back();
    const auto files = input.take<std::uint8_t>() % 4;
    for (int i = 0; i < files; ++i) said.files.push_back(some_file(input.take<std::uint8_t>()));
    const auto length = input.take<std::uint8_t>();
    said.text = input.take_text(length);
  }
  return conversation;
}

void say_all(const Descriptor& socket, const std::vector<Said>& conversation) {
  const timeval at_most{1, 0};  // where nobody listens any more
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &at_most, sizeof(at_most));
  for (const Said& said : conversation) {
    std::vector<int> files;
    for (const Descriptor& file : said.files) files.push_back(file.get());
    try {
      send_message(socket, said.text, files);
    } catch (const Failure&) {
      return;  // who listened has gone
    }
  }
}

// How it ended: nothing where they met.
std::optional<Failure> meet_as(int rank, const std::string& key, double timeout) {
  try {
    meet(
        {key, "fuzzed", {0, 1}, rank, timeout}, [] {},
        [](Encounter&& encounter) {
          expect(encounter.segment.size() == SharedLayout(2).total_bytes(), "the memory is the group's");
          expect(encounter.pidfds.size() == 2, "there is a pidfd for each rank");
        });
    return std::nullopt;
  } catch (const Failure& failure) {
    return failure;
  }
}

// Another process comes to rank 0, and then its rank 1. Who says what no rank says changes nothing.
void say_to_the_host(const std::string& key, const std::vector<Said>& conversation) {
  const bool is_like_a_rank = !conversation.empty() && hello_in(conversation.front().text).has_value();
  const double timeout = is_like_a_rank ? short_timeout : long_timeout;
  std::optional<Failure> guest;
  std::thread others([&] {
    Descriptor other;
    while (!(other = connect_to(address_of(key)))) std::this_thread::yield();
    say_all(other, conversation);
    other = Descriptor();
    guest = meet_as(1, key, timeout);
  });
  const std::optional<Failure> host = meet_as(0, key, timeout);
  others.join();
  for (const auto& ended : {host, guest}) expect(!ended || is_like_a_rank, "another process changes nothing");
}

// Another process is where rank 0 should be. Whatever comes of it is a Failure, or nothing.
void say_to_a_guest(const std::string& key, const std::vector<Said>& conversation) {
  const Descriptor listener = listen_at(address_of(key));
  std::thread other([&] {
    const Descriptor guest = accept_from(listener, 10'000);
    if (guest) say_all(guest, conversation);
  });
  meet_as(1, key, short_timeout);
  other.join();
}

void read(const std::string& text) {
  if (const std::optional<Hello> hello = hello_in(text)) {
    expect(hello->rank >= 0, "a rank is a number");
    const std::optional<Hello> again = hello_in(text_of(*hello));
    expect(again && again->rank == hello->rank && again->processors == hello->processors &&
               again->identity == hello->identity && again->key == hello->key,
           "a hello can be said again");
  }
  const Failure refusal = refusal_in(text);
  const Failure again = refusal_in(text_of_refusal(refusal));
  expect(again.kind == refusal.kind && again.ranks == refusal.ranks && std::string(again.what()) == refusal.what(),
         "a refusal can be said again");
}

int lowest_free_descriptor() { return Descriptor(::dup(0)).get(); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static std::uint64_t number = 0;
  const std::string key = "fuzz " + std::to_string(::getpid()) + " " + std::to_string(++number);
  const int before = lowest_free_descriptor();
  fuzz::Input input(data, bytes);
  const auto part = input.take<std::uint8_t>() % 3;
  if (part == 0)
    read(input.take_text(bytes));
  else if (part == 1)
    say_to_the_host(key, conversation_in(input));
  else
    say_to_a_guest(key, conversation_in(input));
  expect(lowest_free_descriptor() == before, "no descriptor is left");
  return 0;
}
