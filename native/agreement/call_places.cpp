#include "agreement/call_places.hpp"

#include <chrono>
#include <thread>

namespace shim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds(1);
constexpr auto pause = std::chrono::microseconds(50);

}  // namespace

void tell_place(Group& group, std::uint64_t sequence, std::string_view place) {
  CallPlace& mine = group.call_place(group.rank(), sequence);
  mine.text.write(place);
  mine.sequence.store(sequence);
  if (group.carrier != nullptr) group.carrier->told_place(sequence, place);
}

std::vector<std::string> places_of_calls(const Group& group, std::uint64_t sequence) {
  const auto deadline = Clock::now() + patience;
  std::vector<std::string> places;
  for (int rank = 0; rank < group.size(); ++rank) {
    const CallPlace& place = group.call_place(rank, sequence);
    const auto is_told = [&] { return place.sequence.load() == sequence; };
    while (!is_told() && !(rank != group.rank() && group.is_gone(rank)) && Clock::now() < deadline)
      std::this_thread::sleep_for(pause);
    places.push_back(is_told() ? place.text.read() : "");
  }
  return places;
}

}  // namespace shim
