#include "platform/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>
#include <thread>

namespace shim {
namespace {

// Gives ranks processors, one after the other, as augmenting paths of a bipartite graph.
class Seating {
 public:
  explicit Seating(const std::vector<Processors>& by_rank) : by_rank_(by_rank) {}

  // Whether there is one for `rank`, if those who sit already move.
  bool seat(std::size_t rank) {
    asked_.clear();
    return find_for(rank);
  }

 private:
  bool find_for(std::size_t rank) {
    for (const int processor : by_rank_[rank])
      if (owners_.find(processor) == owners_.end()) return own(processor, rank);
    for (const int processor : by_rank_[rank])
      if (asked_.insert(processor).second && find_for(owners_[processor])) return own(processor, rank);
    return false;
  }

  bool own(int processor, std::size_t rank) {
    owners_[processor] = rank;
    return true;
  }

  const std::vector<Processors>& by_rank_;
  std::map<int, std::size_t> owners_;
  std::set<int> asked_;
};

}  // namespace

Processors usable_processors() {
  Processors processors;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int processor = 0; processor < CPU_SETSIZE; ++processor)
      if (CPU_ISSET(processor, &set)) processors.push_back(processor);
  } else {  // there are more than the set has room for
    processors.resize(std::max(1U, std::thread::hardware_concurrency()));
    std::iota(processors.begin(), processors.end(), 0);
  }
  return processors;
}

std::string text_of(const Processors& processors) {
  std::string text;
  for (const int processor : processors) text += (text.empty() ? "" : ",") + std::to_string(processor);
  return text;
}

Processors processors_in(const std::string& text) {
  Processors processors;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int processor = 0; at < end; ++at) {
    const auto [next, error] = std::from_chars(at, end, processor);
    if (error != std::errc() || processor < 0) break;
    processors.push_back(processor);
    at = next;
    if (at == end || *at != ',') break;
  }
  return processors;
}

std::size_t count_together(const std::vector<Processors>& by_rank) {
  std::set<int> all;
  for (const Processors& processors : by_rank) all.insert(processors.begin(), processors.end());
  return all.size();
}

bool are_crowded(const std::vector<Processors>& by_rank) {
  Seating seating(by_rank);
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
    if (!seating.seat(rank)) return true;
  return false;
}

}  // namespace shim
