#include "cross_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "fault_points.hpp"
#include "pause.hpp"

namespace shim {
namespace {

// Where its writer has a processor, it takes a twentieth of a millisecond.
constexpr auto longest_chunk = std::chrono::milliseconds(100);

}  // namespace

void CrossCopy::open() {
  state_.written.store(0);
  state_.untaken.store(word_of({0, chunks_}));
}

CrossCopy::Step CrossCopy::read_next(std::uint64_t message) {
  if (is_cut_off_) return Step::waits;
  Untaken before{};
  if (change(before, [](Untaken& chunks) { ++chunks.front; })) {
    const std::size_t start = before.front * chunk;
    fault_point("in_cross_read");
    if (there_.read(start, here_ + start, bytes_in(before.front))) return Step::moved;
    is_cut_off_ = true;
    return errno == ESRCH || state_.given_up.fetch_or(0) == message ? Step::waits : Step::failed;
  }
  // Of the chunks that were not left then: asked again, there may be one more, which the sender could not write.
  const bool is_all_written = before.back <= chunks_ && state_.written.load() >= chunks_ - before.back;
  // Who gives its tensor up says so before its caller can write to it again, so what was read until now is right.
  return is_all_written && state_.given_up.fetch_or(0) != message ? Step::done : Step::waits;
}

void CrossCopy::close() {
  Untaken before{};
  change(before, [](Untaken& chunks) { chunks.front = chunks.back; });
}

bool CrossCopy::end(const std::function<bool()>& has_ended) {
  close();
  const auto until = std::chrono::steady_clock::now() + longest_chunk;
  while (!is_quiet()) {
    if (has_ended()) return true;
    if (std::chrono::steady_clock::now() > until) return false;
    pause_processor();
  }
  return true;
}

bool CrossCopy::is_quiet() const { return state_.written.load() >= chunks_ - untaken().back; }

CrossCopy::Step CrossCopy::write_next() {
  Untaken before{};
  if (!can_write_ || !change(before, [](Untaken& chunks) { --chunks.back; })) return Step::waits;
  const std::uint32_t number = before.back - 1;
  const std::size_t start = number * chunk;
  fault_point("in_cross_write");
  can_write_ = there_.write(start, here_ + start, bytes_in(number));
  if (can_write_) {
    state_.written.fetch_add(1);
  } else {  // the receiver is to take it
    std::uint64_t word = state_.untaken.load();
    while (!state_.untaken.compare_exchange_weak(word, word_of({untaken_in(word).front, number + 1}))) {
    }
  }
  return Step::moved;
}

std::uint64_t CrossCopy::bytes_taken() const {
  const Untaken left = untaken();
  return std::min<std::uint64_t>(bytes_, (left.front + (chunks_ - left.back)) * chunk);
}

CrossCopy::Untaken CrossCopy::untaken_in(std::uint64_t word) {
  return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
}

std::uint64_t CrossCopy::word_of(Untaken chunks) {
  return static_cast<std::uint64_t>(chunks.back) << 32 | chunks.front;
}

// As far as the other rank can be believed.
CrossCopy::Untaken CrossCopy::untaken() const {
  const Untaken said = untaken_in(state_.untaken.load());
  const std::uint32_t back = std::min(said.back, chunks_);
  return {std::min(said.front, back), back};
}

// False where nothing is left to take.
template <class Change>
bool CrossCopy::change(Untaken& before, const Change& change) {
  std::uint64_t word = state_.untaken.load();
  while (true) {
    before = untaken_in(word);
    if (before.back > chunks_ || before.front >= before.back) return false;
    Untaken after = before;
    change(after);
    if (state_.untaken.compare_exchange_weak(word, word_of(after))) return true;
  }
}

std::size_t CrossCopy::bytes_in(std::uint32_t number) const { return std::min(chunk, bytes_ - number * chunk); }

}  // namespace shim
