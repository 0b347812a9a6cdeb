// What the model of the ring consists of.
#pragma once

#include <array>
#include <cstdint>

namespace shim::model::ring {

enum Broken {
  nothing,
  filled_too_soon,    // one step before the slot is free
  free_for_one_peer,  // the others are not asked
  told_before_filled,
  done_before_read,
  read_without_waiting,
  first_is_not_waited_for,  // a slot counts as filled before the arrival, whoever filled it then
  steps_go_on_after_mismatch,
  takes_no_turn,            // one of two ranks, which keeps its ring
  arrival_tells_of_itself,  // as if who has arrived needed nothing any more of that operation
  claimed_when_done,        // a slot's lines, after it was told that it is read
  claimed_by_all,           // lines that other ranks read as well
  made_too_soon,            // told before it is made
  made_is_not_waited_for,
  two_slots,  // where three steps are under way: one filled, one made, one taken
};

constexpr int most_ranks = 3;
constexpr int most_slots = 3;
constexpr int operations = 4;
constexpr int most_steps = 3;
constexpr int rank_1_reads_nothing = 3;  // in this operation, as where one rank gets all
// clang-format off
enum At : std::uint8_t {
  begin, wait_first, fill_first, arrive, waits, fill, filled, read, reading, claiming, make, making, take, taking, over
};
// clang-format on
enum Error : std::uint8_t { none, other_content, written_meanwhile, needed_still };
struct Slot {
  std::uint8_t number;  // of the chunk, from 1
  std::uint8_t is_being_written;
  std::uint8_t made;  // number of the chunk that what is made in it belongs to
};
struct Rank {
  std::uint8_t at, operation, base, step, peer, prefilled;
  std::uint8_t ready, made, done;         // as the others see them
  std::uint8_t arrived;                   // the operation
  std::uint8_t steps_over;                // which all have ended, as their arrivals told
  std::array<std::uint8_t, 2> filled_of;  // operations whose first slot was filled before, in the line of each parity
};

}  // namespace shim::model::ring
