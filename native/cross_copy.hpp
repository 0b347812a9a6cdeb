// One copy of a long message, from the sender's tensor to the receiver's.
//
// Both ranks copy, in chunks: the receiver reads from the front on, the sender writes from the back on, until they
// meet. Each takes a chunk before it copies it, in a word that both write. The receiver can close that word at any
// time: the sender then writes no more than the chunk that it has taken before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "remote_tensor.hpp"
#include "shared_layout.hpp"

namespace shim {

// One rank's end of it: `here` is its own tensor, `there` the other's. Of one thread at a time.
class CrossCopy {
 public:
  static constexpr std::size_t chunk = 256 * 1024;
  enum class Step {
    moved,   // a chunk was copied, or left to the other rank
    waits,   // for the other rank
    done,    // all is there
    failed,  // the kernel does not read one of the tensors, or does not write the other; errno says why
  };

  CrossCopy(CrossCopyState& state, std::byte* here, RemoteTensor there, std::uint64_t bytes)
      : state_(state),
        here_(here),
        there_(std::move(there)),
        bytes_(bytes),
        chunks_(static_cast<std::uint32_t>((bytes + chunk - 1) / chunk)) {}

  // By the receiver.
  void open();
  Step read_next(std::uint64_t message);  // with the number that the sender puts there when it gives its tensor up
  // Whether the sender writes nothing: once it is closed, never again.
  bool is_quiet() const;
  // Closes it and waits until it is, or the sender's process has_ended(). False where that takes longer than any chunk
  // should: the sender may have been stopped in the middle, and write one more when it goes on.
  bool end(const std::function<bool()>& has_ended);
  // Whether it may go on, after it has waited.
  bool may_go_on() const { return !is_cut_off_ && (untaken().front < untaken().back || is_quiet()); }

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

  CrossCopyState& state_;
  std::byte* here_;
  RemoteTensor there_;
  std::uint64_t bytes_;
  std::uint32_t chunks_;
  bool can_write_ = true;
  bool is_cut_off_ = false;  // the sender has gone or given up, which the group will hear of
};

}  // namespace shim
