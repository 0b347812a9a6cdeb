#include "messages/lent_copy.hpp"

#include <algorithm>
#include <chrono>

#include "machine/copies.hpp"
#include "platform/fault_points.hpp"
#include "platform/pause.hpp"

namespace shim {
namespace {

// Where its writer has a processor, it takes a twentieth of a millisecond.
constexpr auto longest_chunk = std::chrono::milliseconds(100);

}  // namespace

void LentCopy::open() {
  state_.written.store(0);
  state_.untaken.store(word_of({0, chunks_}));
}

LentCopy::Step LentCopy::read_next(std::uint64_t message) {
  Untaken before{};
  if (change(before, [](Untaken& chunks) { ++chunks.front; })) {
    const std::size_t start = before.front * chunk;
    fault_point("in_lent_read");
    OutputCopy{streams_}(here_ + start, there_.get() + start, bytes_in(before.front));
    return Step::moved;
  }
  const bool is_all_written = before.back <= chunks_ && state_.written.load() >= chunks_ - before.back;
  // Who gives its tensor up says so before its caller can write to it again, so what was read until now is right.
  return is_all_written && state_.given_up.fetch_or(0) != message ? Step::done : Step::waits;
}

void LentCopy::close() {
  Untaken before{};
  change(before, [](Untaken& chunks) { chunks.front = chunks.back; });
}

bool LentCopy::end(const std::function<bool()>& has_ended) {
  close();
  const auto until = std::chrono::steady_clock::now() + longest_chunk;
  while (!is_quiet()) {
    if (has_ended()) return true;
    if (std::chrono::steady_clock::now() > until) return false;
    pause_processor();
  }
  return true;
}

bool LentCopy::is_quiet() const { return state_.written.load() >= chunks_ - untaken().back; }

LentCopy::Step LentCopy::write_next() {
  Untaken before{};
  if (there_ == nullptr || !change(before, [](Untaken& chunks) { --chunks.back; })) return Step::waits;
  const std::uint32_t number = before.back - 1;
  const std::size_t start = number * chunk;
  fault_point("in_lent_write");
  OutputCopy{streams_}(there_.get() + start, here_ + start, bytes_in(number));
  state_.written.fetch_add(1);
  return Step::moved;
}

std::uint64_t LentCopy::bytes_taken() const {
  const Untaken left = untaken();
  return std::min<std::uint64_t>(bytes_, (left.front + (chunks_ - left.back)) * chunk);
}

LentCopy::Untaken LentCopy::untaken_in(std::uint64_t word) {
  return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
}

std::uint64_t LentCopy::word_of(Untaken chunks) { return static_cast<std::uint64_t>(chunks.back) << 32 | chunks.front; }

// As far as the other rank can be believed.
LentCopy::Untaken LentCopy::untaken() const {
  const Untaken said = untaken_in(state_.untaken.load());
  const std::uint32_t back = std::min(said.back, chunks_);
  return {std::min(said.front, back), back};
}

// False where nothing is left to take.
template <class Change>
bool LentCopy::change(Untaken& before, const Change& change) {
  std::uint64_t word = state_.untaken.load();
  while (true) {
    before = untaken_in(word);
    if (before.back > chunks_ || before.front >= before.back) return false;
    Untaken after = before;
    change(after);
    if (state_.untaken.compare_exchange_weak(word, word_of(after))) return true;
  }
}

std::size_t LentCopy::bytes_in(std::uint32_t number) const { return std::min(chunk, bytes_ - number * chunk); }

}  // namespace shim
