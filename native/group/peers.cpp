#include "group/peers.hpp"

#include <unistd.h>

#include <cctype>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "platform/process.hpp"
#include "platform/steady_time.hpp"

namespace shim {
namespace {

constexpr auto patience_with_watcher = std::chrono::milliseconds(20);

std::string reason_of(const StatusLine& line) { return {line.reason, ::strnlen(line.reason, sizeof(line.reason))}; }

}  // namespace

Peers::Peers(const std::vector<StatusLine*>& lines, const std::vector<RankNote*>& notes, int rank)
    : lines_(lines),
      notes_(notes),
      rank_(rank),
      size_(static_cast<int>(lines.size())),
      ends_(std::make_unique<End[]>(lines.size())),
      processes_(lines.size(), static_cast<int>(::getpid())) {}

Presence Peers::presence(int rank) const {
  const bool has_ended = process_has_ended(rank);  // first: what it said before is then seen
  const StatusLine& theirs = line(rank);
  switch (theirs.state.load()) {
    case RankState::active:
      return has_ended ? Presence::died : Presence::present;
    case RankState::failed:
      return has_ended || theirs.has_left.load() != 0 ? Presence::left : Presence::gave_up;
    case RankState::left:
      break;
  }
  return Presence::left;
}

bool Peers::are_all_gone() const {
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_ && !is_gone(rank)) return false;
  return size_ > 1;
}

int Peers::first_missed(const std::function<bool(int)>& is_ready) const {
  int first = -1;
  const auto has_died = [this](int rank) { return presence(rank) == Presence::died; };
  const auto is_before = [&](int a, int b) {
    if (has_died(a) != has_died(b)) return has_died(a);
    if (has_died(a)) return ended_at(a) < ended_at(b);
    return line(a).state.load() == RankState::failed && line(b).state.load() == RankState::left;
  };
  for (int rank = 0; rank < size_; ++rank)
    // In this order: what a rank wrote before it went is still good.
    if (rank != rank_ && is_gone(rank) && !is_ready(rank) && (first < 0 || is_before(rank, first))) first = rank;
  return first;
}

int Peers::culprit_behind(int rank) const {
  for (int steps = 0; steps < size_ && line(rank).state.load() == RankState::failed; ++steps) {
    const int cause = line(rank).cause.load();
    if (cause < 0 || cause >= size_ || cause == rank_) break;
    rank = cause;
  }
  return rank;
}

std::string Peers::ending_of(int rank) const {
  const StatusLine& theirs = line(rank);
  const auto reason = [&theirs] {
    const std::string text = reason_of(theirs);
    return text.empty() ? text : " (" + text + ")";
  };
  switch (theirs.state.load()) {
    case RankState::left:
      return " left the group" + reason();
    case RankState::failed:
      return " gave the group up" + reason();
    case RankState::active:
      break;
  }
  const std::int64_t at = ended_at(rank);
  if (at == 0) return " was lost";
  const std::string& how = ends_[static_cast<std::size_t>(rank)].how;
  if (how.starts_with("'s ")) return how;  // of a rank on another host, with where that is
  const bool ends_in_number = !how.empty() && std::isdigit(static_cast<unsigned char>(how.back())) != 0;
  return "'s process (pid " + std::to_string(note(rank).process.load()) + ") " + (how.empty() ? "died" : how) +
         (ends_in_number ? ", " : " ") + std::to_string((steady_ns() - at) / 1'000'000) + " ms ago";
}

std::string Peers::words_of(int reporter, int lost) const {
  if (is_gone(lost)) return {};
  const std::string words = reason_of(line(reporter));
  return words.empty() ? words : ": " + words;
}

// Another rank may have heard of an end a little earlier, and say so before this process's own watcher knows how it
// was.
void Peers::wait_for_word_of(int rank) const {
  const auto until = std::chrono::steady_clock::now() + patience_with_watcher;
  while (!is_gone(rank) && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

bool Peers::note_end(int rank, std::string how) {
  End& end = ends_[static_cast<std::size_t>(rank)];
  if (end.at.load() != 0) return false;
  end.how = std::move(how);
  end.at.store(steady_ns());
  return true;
}

void Peers::set_processes(const std::vector<Descriptor>& pidfds) {
  for (std::size_t rank = 0; rank < pidfds.size(); ++rank)
    if (pidfds[rank]) processes_[rank] = number_of(pidfds[rank].get());
}

// By number, a process may be another one: of another namespace, or one that came after it.
int Peers::process_to_read(int rank) const {
  const RankNote& theirs = note(rank);
  const int process = process_of(rank);
  std::uint64_t seen = 0;
  const bool is_read = read_memory(process, theirs.identity_at, &seen, sizeof(seen));
  return is_read && seen == theirs.identity ? process : 0;
}

}  // namespace shim
