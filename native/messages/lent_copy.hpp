// One copy of a long message, from the sender's tensor to the receiver's, of which the receiver has mapped the
// sender's.
//
// Where the sender has mapped the receiver's tensor too, both ranks copy, in chunks: the receiver from the front on,
// the sender from the back on, until they meet. Each takes a chunk before it copies it, in a word that both write. The
// receiver can close that word at any time: the sender then writes no more than the chunk that it has taken before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "group/shared_layout.hpp"

namespace shim {

// One rank's end of it: `here` is its own tensor, `there` the other's, null where this is the sender's end and it has
// not mapped that. What is copied is written past the caches where it `streams`. Of one thread at a time.
class LentCopy {
 public:
  static constexpr std::size_t chunk = 256 * 1024;
  enum class Step {
    moved,  // a chunk was copied
    waits,  // for the other rank
    done,   // all is there
  };

  LentCopy(LentCopyState& state, std::byte* here, std::shared_ptr<std::byte> there, std::uint64_t bytes, bool streams)
      : state_(state),
        here_(here),
        there_(std::move(there)),
        bytes_(bytes),
        chunks_(static_cast<std::uint32_t>((bytes + chunk - 1) / chunk)),
        streams_(streams) {}

  // By the receiver.
  void open();
  Step read_next(std::uint64_t message);  // with the number that the sender puts there when it gives its tensor up
  // Whether the sender writes nothing: once it is closed, never again.
  bool is_quiet() const;
  // Closes it and waits until it is, or the sender's process has_ended(). False where that takes longer than any chunk
  // should: the sender may have been stopped in the middle, and write one more when it goes on.
  bool end(const std::function<bool()>& has_ended);

  // By the sender.
  Step write_next();

  // That were copied, or are being copied. For either.
  std::uint64_t bytes_taken() const;

 private:
  struct Untaken {  // chunks [front, back)
    std::uint32_t front, back;
  };
  void close();
  static Untaken untaken_in(std::uint64_t word);
  static std::uint64_t word_of(Untaken chunks);
  template <class Change>
  bool change(Untaken& before, const Change& change);
  Untaken untaken() const;
  std::size_t bytes_in(std::uint32_t number) const;

  LentCopyState& state_;
  std::byte* here_;
  std::shared_ptr<std::byte> there_;
  std::uint64_t bytes_;
  std::uint32_t chunks_;
  bool streams_;
};

}  // namespace shim
