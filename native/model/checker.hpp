// Looks at every order in which the ranks of a protocol can take their steps.
//
// A protocol has a `State` of plain bytes without padding, and
//   State first() const
//   void steps(const State&, emit) const    calls emit(rank, what, State) for each step that some rank may take next,
//                                           and emit(rank, what, State, true) for accidents, which need not happen
//   const char* violation(const State&) const   what must never be, or null
//   bool is_over(const State&) const        whether every rank has come to its end, which without further accidents
//   must
//                                           be possible from everywhere
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace shim::model {

struct Outcome {
  std::size_t states = 0;
  std::string violation;           // empty where there is none
  std::vector<std::string> trace;  // the shortest way to it
};

// States by number, each with the one that it was first reached from.
template <class State>
class Visited {
  static_assert(std::has_unique_object_representations_v<State>, "states are compared byte by byte");

 public:
  Visited() : table_(1 << 16, nothing) {}

  std::size_t size() const { return states_.size(); }
  const State& operator[](std::size_t number) const { return states_[number]; }
  std::size_t origin(std::size_t number) const { return origins_[number]; }

  // The number of the state, which gets one if it is new.
  std::uint32_t add(const State& state, std::size_t origin) {
    if (states_.size() * 2 >= table_.size()) grow();
    std::uint32_t& place = table_[place_of(state)];
    if (place != nothing) return place;
    place = static_cast<std::uint32_t>(states_.size());
    states_.push_back(state);
    origins_.push_back(static_cast<std::uint32_t>(origin));
    return place;
  }

 private:
  static constexpr std::uint32_t nothing = ~0U;

  std::size_t place_of(const State& state) const {
    std::size_t place = hash_of(state) & (table_.size() - 1);
    while (table_[place] != nothing && std::memcmp(&states_[table_[place]], &state, sizeof(State)) != 0)
      place = (place + 1) & (table_.size() - 1);
    return place;
  }
  static std::size_t hash_of(const State& state) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&state);
    std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
    for (std::size_t i = 0; i < sizeof(State); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
    return static_cast<std::size_t>(hash ^ (hash >> 29));
  }
  void grow() {
    table_.assign(table_.size() * 2, nothing);
    for (std::size_t number = 0; number < states_.size(); ++number)
      table_[place_of(states_[number])] = static_cast<std::uint32_t>(number);
  }

  std::vector<State> states_;
  std::vector<std::uint32_t> origins_;
  std::vector<std::uint32_t> table_;
};

inline std::string label(int rank, const char* what) { return "rank " + std::to_string(rank) + " " + what; }

template <class Protocol, class State>
std::vector<std::string> trace_to(const Protocol& protocol, const Visited<State>& visited, std::size_t number) {
  std::vector<std::string> trace;
  for (; number != 0; number = visited.origin(number)) {
    std::string taken;
    protocol.steps(visited[visited.origin(number)], [&](int rank, const char* what, const State& state, bool = false) {
      if (taken.empty() && std::memcmp(&state, &visited[number], sizeof(State)) == 0) taken = label(rank, what);
    });
    trace.insert(trace.begin(), taken);
  }
  return trace;
}

// Steps from state to state that are no accidents.
class Steps {
 public:
  void add(std::size_t from, std::uint32_t to) {
    from_.push_back(static_cast<std::uint32_t>(from));
    to_.push_back(to);
  }
  // The first state from which none of the states in `ends` can be reached; `count` when there is none.
  std::size_t first_without_end(std::size_t count, const std::vector<std::uint32_t>& ends) const {
    std::vector<std::uint32_t> first(count + 1, 0);  // of those that lead to a state, in `leading`
    for (const std::uint32_t to : to_) ++first[to + 1];
    for (std::size_t i = 1; i <= count; ++i) first[i] += first[i - 1];
    std::vector<std::uint32_t> leading(to_.size());
    std::vector<std::uint32_t> next = first;
    for (std::size_t i = 0; i < to_.size(); ++i) leading[next[to_[i]]++] = from_[i];
    std::vector<bool> ends_somewhere(count, false);
    std::vector<std::uint32_t> left = ends;
    for (const std::uint32_t end : ends) ends_somewhere[end] = true;
    while (!left.empty()) {
      const std::uint32_t state = left.back();
      left.pop_back();
      for (std::uint32_t i = first[state]; i < first[state + 1]; ++i)
        if (!ends_somewhere[leading[i]]) {
          ends_somewhere[leading[i]] = true;
          left.push_back(leading[i]);
        }
    }
    return static_cast<std::size_t>(std::find(ends_somewhere.begin(), ends_somewhere.end(), false) -
                                    ends_somewhere.begin());
  }

 private:
  std::vector<std::uint32_t> from_;
  std::vector<std::uint32_t> to_;
};

// Breadth first, so that the trace is the shortest there is.
template <class Protocol>
Outcome explore(const Protocol& protocol) {
  using State = typename Protocol::State;
  Visited<State> visited;
  Steps steps;
  std::vector<std::uint32_t> ends;
  visited.add(protocol.first(), 0);
  for (std::size_t number = 0; number < visited.size(); ++number) {
    const State state = visited[number];
    if (const char* violation = protocol.violation(state))
      return {visited.size(), violation, trace_to(protocol, visited, number)};
    if (protocol.is_over(state)) ends.push_back(static_cast<std::uint32_t>(number));
    protocol.steps(state, [&](int, const char*, const State& next, bool is_accident = false) {
      const std::uint32_t there = visited.add(next, number);
      if (!is_accident) steps.add(number, there);
    });
  }
  const std::size_t stuck = steps.first_without_end(visited.size(), ends);
  if (stuck == visited.size()) return {visited.size(), {}, {}};
  return {visited.size(), "somebody waits for ever", trace_to(protocol, visited, stuck)};
}

// One protocol as it is, or broken in one place, which must be noticed.
struct Case {
  std::string protocol;
  int ranks;
  std::string broken;  // empty for the protocol as it is
  Outcome (*run)(int ranks, int broken);
  int number;  // of what is broken
};

}  // namespace shim::model
