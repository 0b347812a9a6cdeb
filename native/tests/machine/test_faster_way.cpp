// Which of two ways is found to be the faster one.
#include "machine/faster_way.hpp"

#include <thread>
#include <vector>

#include "tests/check.hpp"

using namespace shim;

namespace {

// Which way each of some pieces went, where the first way takes so long, and the second.
std::vector<bool> ways_of_pieces(std::chrono::milliseconds first, std::chrono::milliseconds second) {
  FasterWay way(8);
  std::vector<bool> went_first;
  for (int piece = 0; piece < 8; ++piece)
    way.piece([&](bool is_first) {
      went_first.push_back(is_first);
      std::this_thread::sleep_for(is_first ? first : second);
    });
  return went_first;
}

}  // namespace

SHIM_TEST(pieces_go_the_way_that_was_faster_once_both_were_tried) {
  using std::chrono::milliseconds;
  CHECK(ways_of_pieces(milliseconds(40), milliseconds(1)) ==
        (std::vector<bool>{true, false, true, false, false, false, false, false}));
  CHECK(ways_of_pieces(milliseconds(1), milliseconds(40)) ==
        (std::vector<bool>{true, false, true, false, true, true, true, true}));
}

SHIM_TEST(a_piece_that_something_else_held_up_does_not_decide) {
  for (const int held_up : {0, 2}) {
    FasterWay way(8);
    for (int piece = 0; piece < 4; ++piece)
      way.piece([&](bool is_first) {
        std::this_thread::sleep_for(std::chrono::milliseconds(piece == held_up ? 60 : is_first ? 1 : 20));
      });
    way.piece([](bool is_first) { CHECK(is_first); });
  }
}

SHIM_TEST(few_pieces_go_the_first_way) {
  FasterWay way(7);
  int went_first = 0;
  for (int piece = 0; piece < 7; ++piece) way.piece([&](bool is_first) { went_first += is_first ? 1 : 0; });
  CHECK_EQUAL(went_first, 7);
}
