#include "meeting/rendezvous_messages.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include "group/shared_layout.hpp"
#include "platform/process.hpp"
#include "platform/socket_messages.hpp"

namespace shim {
namespace {

constexpr std::string_view greeting = "shim rank ";

// The number that `text` begins with, which is taken off it; nothing where it begins with none, or one below zero.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view beginning) {
  if (!text.starts_with(beginning)) return false;
  text.remove_prefix(beginning.size());
  return true;
}

// "12 3 proven", on a line of its own behind the identity, and a line for the outer job.
std::string text_of(const Origin& origin) {
  return origin.process.empty() ? ""
                                : "\n" + origin.process + " " + origin.parent + (origin.is_proven ? " proven" : "") +
                                      (origin.outer_job.empty() ? "" : "\n" + origin.outer_job);
}

Origin origin_in(std::string_view text) {
  Origin origin;
  if (const std::size_t line = text.find('\n'); line != std::string_view::npos) {
    origin.outer_job = text.substr(line + 1);
    text = text.substr(0, line);
  }
  origin.process = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), origin.process.size() + 1));
  origin.parent = text.substr(0, text.find(' '));
  text.remove_prefix(origin.parent.size());
  origin.is_proven = text == " proven";
  return origin;
}

Failure no_reason() { return Failure(FailureKind::engine, "refused, for a reason that no rank would give"); }

}  // namespace

std::string identity_of(const Meeting& meeting) {
  std::string ranks;
  for (const int rank : meeting.world_ranks) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  return "a group of " + std::to_string(meeting.world_ranks.size()) + " with the ranks [" + ranks + "], protocol " +
         std::to_string(protocol_version) + ", " + std::to_string(meeting.layout().total_bytes()) + " bytes" +
         (meeting.engine.empty() ? "" : ", engine " + meeting.engine);
}

std::string text_of(const Hello& hello) {
  return std::string(greeting) + std::to_string(hello.rank) + " " + text_of(hello.processors) + "\n" + hello.identity +
         text_of(hello.origin) + '\0' + hello.key;
}

std::optional<Hello> hello_in(const std::string& text) {
  const std::size_t end_of_text = std::min(text.find('\0'), text.size());
  std::string_view rest = std::string_view(text).substr(0, end_of_text);
  if (!take(rest, greeting)) return std::nullopt;
  const std::optional<int> rank = take_number(rest);
  const std::size_t end = rest.find('\n');
  if (!rank || end == std::string_view::npos || !take(rest, " ")) return std::nullopt;
  Hello hello{*rank,
              processors_in(std::string(rest.substr(0, end - 1))),
              std::string(rest.substr(end)),
              {},
              text.substr(std::min(end_of_text + 1, text.size()))};
  if (const std::size_t line = hello.identity.find('\n'); line != std::string::npos) {
    hello.origin = origin_in(std::string_view(hello.identity).substr(line + 1));
    hello.identity.resize(line);
  }
  return hello;
}

std::string text_of_refusal(const Failure& failure) {
  std::string text(1, static_cast<char>('a' + static_cast<int>(failure.kind)));
  for (const int rank : failure.ranks) text += std::to_string(rank) + ',';
  return text + '\n' + failure.what();
}

Failure refusal_in(const std::string& text) {
  std::string_view rest = text;
  const int kind = rest.empty() ? -1 : rest.front() - 'a';
  if (kind < 0 || kind > static_cast<int>(FailureKind::memory)) return no_reason();
  rest.remove_prefix(1);
  std::vector<int> ranks;
  while (!take(rest, "\n")) {
    const std::optional<int> rank = take_number(rest);
    if (!rank || !take(rest, ",")) return no_reason();
    ranks.push_back(*rank);
  }
  return Failure(static_cast<FailureKind>(kind), std::string(rest), std::move(ranks));
}

void introduce(const Descriptor& socket, const Meeting& meeting) {
  const std::string hello =
      text_of(Hello{meeting.rank, usable_processors(), identity_of(meeting), meeting.origin, meeting.key});
  try {
    send_message(socket, hello, {pidfd_of_this_process().get()});
  } catch (const Failure&) {
    send_message(socket, hello, {});
    throw;
  }
}

void refuse(const Descriptor& socket, const Failure& failure) {
  if (!socket) return;
  try {
    send_message(socket, refusal + text_of_refusal(failure), {});
  } catch (const std::exception&) {
    // The failure itself is what is told here.
  }
}

}  // namespace shim
