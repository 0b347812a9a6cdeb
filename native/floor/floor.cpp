// What the machine can do at all: the copies a collective cannot do without, by all ranks at once and without any
// synchronisation, and one cache line's way there and back. `shim bench` gives what it measures as a ratio to these.
//
// All ranks map one segment. A rank's part of it is a ring, kSlots chunks that stay in its cache, and behind that its
// area, which stands for a tensor that lies in shared memory. A movement (shim/bench/floors.py says which one
// a collective has) is carried out chunk by chunk, so that what goes through a ring stays in the cache. Nobody waits
// for anybody: a rank reads whatever is in the others' rings.

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace {

constexpr std::size_t kChunk = 128 * 1024;
constexpr std::size_t kSlots = 4;
constexpr std::size_t kRing = kChunk * kSlots;
constexpr std::uint64_t kSpins = 4096;
constexpr std::uint64_t kLooks = 16;  // round trips between two looks at the clock
constexpr double kMostSeconds = 0.02;

volatile std::uint64_t sink;  // keeps the compiler from dropping reads whose sum nobody wants

void copy(char* to, const char* from, std::size_t bytes, bool streaming) {
#if defined(__SSE2__)
  if (streaming && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    std::size_t done = 0;
    for (; done + 64 <= bytes; done += 64) {
      for (std::size_t part = 0; part < 64; part += 16) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + done + part),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done + part)));
      }
    }
    std::memcpy(to + done, from + done, bytes - done);
    return;
  }
#endif
  (void)streaming;
  std::memcpy(to, from, bytes);
}

void read(const char* from, std::size_t bytes) {
  std::uint64_t sum[8] = {};
  std::size_t done = 0;
  for (; done + 64 <= bytes; done += 64) {
    std::uint64_t words[8];
    std::memcpy(words, from + done, 64);
    for (int i = 0; i < 8; ++i) sum[i] += words[i];
  }
  for (; done < bytes; ++done) sum[0] += static_cast<unsigned char>(from[done]);
  for (std::uint64_t part : sum) sink = part;
}

std::uint64_t wait_until_other_than(const std::atomic_ref<std::uint64_t>& word, std::uint64_t value) {
  for (std::uint64_t look = 1;; ++look) {
    const std::uint64_t found = word.load(std::memory_order_acquire);
    if (found != value) return found;
    if (look % kSpins == 0) sched_yield();  // both ranks may be on one processor
  }
}

void update(char* memory, std::size_t bytes) {
  for (std::size_t done = 0; done + 64 <= bytes; done += 64) {
    std::uint64_t words[8];
    std::memcpy(words, memory + done, 64);
    for (std::uint64_t& word : words) word += 1;
    std::memcpy(memory + done, words, 64);
  }
}

std::uint64_t at_least_one(std::uint64_t number) { return std::max<std::uint64_t>(number, 1); }

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// What is left of one kind of work of a movement, taken chunk by chunk, of which none goes beyond a slice.
struct Left {
  std::size_t total;
  std::size_t done = 0;

  std::size_t take() { return take(kChunk); }
  std::size_t take_of(std::uint64_t slice) { return take(std::min<std::uint64_t>(kChunk, slice - done % slice)); }
  bool any() const { return done < total; }

 private:
  std::size_t take(std::size_t most) {
    const std::size_t part = std::min(most, total - done);
    done += part;
    return part;
  }
};

}  // namespace

extern "C" {

// How many bytes one rank moves, by kind, in one call; see Movement in shim/bench/floors.py.
struct Movement {
  std::uint64_t in;         // from its own tensor into its ring
  std::uint64_t out;        // from the peers' rings to its output
  std::uint64_t own;        // from its own tensor to its output
  std::uint64_t direct;     // from the peers' areas to its output
  std::uint64_t read;       // from the peers' areas, not stored
  std::uint64_t fold;       // from the peers' rings, not stored
  std::uint64_t cached;     // from the peers' rings into its own
  std::uint64_t update;     // of its own tensor, loaded and stored in place
  std::uint64_t push;       // from its own tensor to the peers' areas, as much to each
  std::uint64_t slices;     // of all ranks' areas, one slice of each, loaded and stored in place
  std::uint64_t own_at;     // where in its own tensor the bytes of `own` or `update` begin
  std::uint64_t direct_at;  // where in each peer's area those of `direct` or `read` begin
  std::uint64_t push_at;    // where in its own tensor, and in what each peer writes, those of `push` begin
};

// Where that is. `segment` has `ranks` parts of `part` bytes; the peers are `peers` ranks from `first_peer` on, going
// round and leaving `rank` out. `source` is its own tensor, `output` where it writes, which may be the same memory.
struct Memory {
  char* segment;
  std::uint64_t part;
  std::uint64_t ranks;
  std::uint64_t rank;
  std::uint64_t first_peer;
  std::uint64_t peers;
  const char* source;
  char* output;
  std::uint64_t pushed_to;  // where in a peer's area lies what it writes
};

std::uint64_t shim_floor_ring_bytes() { return kRing; }

// Carry out the movement `calls` times and return the seconds of all of them. Outputs are written past the cache when
// `streaming` is not 0.
double shim_floor_move(const Movement* movement, const Memory* memory, std::uint64_t calls, int streaming) {
  auto part_of = [memory](std::uint64_t rank) { return memory->segment + rank * memory->part; };
  auto peer = [memory](std::uint64_t index) {
    std::uint64_t found = (memory->first_peer + index % memory->peers) % memory->ranks;
    return found == memory->rank ? (found + 1) % memory->ranks : found;
  };
  char* ring = part_of(memory->rank);
  const double begin = now();
  for (std::uint64_t call = 0; call < calls; ++call) {
    Left in{movement->in}, out{movement->out}, own{movement->own}, direct{movement->direct}, read_areas{movement->read},
        fold{movement->fold}, cached{movement->cached}, updated{movement->update}, push{movement->push},
        slices{movement->slices};
    std::size_t written = 0;
    const std::uint64_t of_one_peer = at_least_one((movement->direct + movement->read) / at_least_one(memory->peers));
    const std::uint64_t to_one_peer = at_least_one(movement->push / at_least_one(memory->peers));
    const std::uint64_t slice_of_a_rank = at_least_one(movement->slices / memory->ranks);
    for (std::uint64_t step = 0; in.any() || out.any() || own.any() || direct.any() || read_areas.any() || fold.any() ||
                                 cached.any() || updated.any() || push.any() || slices.any();
         ++step) {
      const std::size_t slot = step % kSlots * kChunk;
      const std::size_t filled = (step + kSlots / 2) % kSlots * kChunk;  // which the peers are not writing now
      if (in.any()) {
        const std::size_t at = in.done;
        copy(ring + slot, memory->source + at, in.take(), false);
      }
      if (fold.any()) read(part_of(peer(step)) + filled, fold.take());
      if (cached.any()) copy(ring + slot, part_of(peer(step)) + filled, cached.take(), false);
      if (out.any()) {
        const std::size_t bytes = out.take();
        copy(memory->output + written, part_of(peer(step)) + filled, bytes, streaming != 0);
        written += bytes;
      }
      if (own.any()) {
        const std::size_t at = own.done, bytes = own.take();
        copy(memory->output + written, memory->source + movement->own_at + at, bytes, streaming != 0);
        written += bytes;
      }
      if (updated.any()) {
        const std::size_t at = updated.done;
        update(memory->output + movement->own_at + at, updated.take());
      }
      if (push.any()) {
        const std::size_t at = push.done, bytes = push.take_of(to_one_peer);
        const std::uint64_t to = std::min<std::uint64_t>(at / to_one_peer, memory->peers - 1);
        const std::uint64_t place = movement->push_at + (at - to * to_one_peer);
        copy(part_of(peer(to)) + kRing + memory->pushed_to + place, memory->source + place, bytes, streaming != 0);
      }
      if (slices.any()) {
        const std::size_t at = slices.done, slice = slice_of_a_rank, bytes = slices.take_of(slice);
        const std::uint64_t number = std::min<std::uint64_t>(at / slice, memory->ranks - 1);
        char* area = part_of((memory->rank + number) % memory->ranks) + kRing;
        update(area + memory->rank * slice + (at - number * slice), bytes);
      }
      if (direct.any()) {
        const std::size_t at = direct.done, bytes = direct.take_of(of_one_peer);
        const std::uint64_t from = std::min<std::uint64_t>(at / of_one_peer, memory->peers - 1);
        const char* area = part_of(peer(from)) + kRing + movement->direct_at;
        copy(memory->output + written, area + (at - from * of_one_peer), bytes, streaming != 0);
        written += bytes;
      }
      if (read_areas.any()) {
        const std::size_t at = read_areas.done, bytes = read_areas.take_of(of_one_peer);
        const std::uint64_t from = std::min<std::uint64_t>(at / of_one_peer, memory->peers - 1);
        read(part_of(peer(from)) + kRing + movement->direct_at + (at - from * of_one_peer), bytes);
      }
    }
#if defined(__SSE2__)
    if (streaming) _mm_sfence();
#endif
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the next call's copies are not merged with this one's
  }
  return now() - begin;
}

// Hand a cache line there and back between ranks 0 and 1, up to `calls` times and for kMostSeconds, and return the
// seconds of one time on rank 0, and 0 on rank 1. `line` is a word in the segment, 0 when the ranks begin and when both
// have ended.
double shim_floor_round_trip(std::uint64_t* line, std::uint64_t rank, std::uint64_t calls) {
  enum : std::uint64_t { kOfFirst, kOfSecond, kEnd };
  std::atomic_ref<std::uint64_t> state(*line);
  if (rank == 1) {
    while (wait_until_other_than(state, kOfFirst) != kEnd) state.store(kOfFirst, std::memory_order_release);
    state.store(kOfFirst, std::memory_order_release);
    return 0;
  }
  const double begin = now();
  std::uint64_t call = 0;
  double seconds = 0;
  while (call < calls && seconds < kMostSeconds) {
    state.store(kOfSecond, std::memory_order_release);
    wait_until_other_than(state, kOfSecond);
    if (++call % kLooks == 0) seconds = now() - begin;
  }
  seconds = now() - begin;
  state.store(kEnd, std::memory_order_release);
  wait_until_other_than(state, kEnd);
  return seconds / static_cast<double>(call);
}

}  // extern "C"
