// Every order of steps of every protocol: prints the number of states of each, and how each broken one was noticed.
// The status is 1 where a protocol has a violation, or a broken one has none.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "model/cases.hpp"

using namespace shim::model;

namespace {

void print_trace(const Outcome& outcome) {
  for (const std::string& step : outcome.trace) std::printf("    %s\n", step.c_str());
}

}  // namespace

int main(int count, char** arguments) {
  const bool shows_traces = count > 1 && std::strcmp(arguments[1], "--traces") == 0;
  std::vector<Case> cases;
  for (const auto& some : {arrival_cases(), exchange_cases(), doorbell_cases(), direct_cases(), failure_cases(),
                           channel_cases(), rooms_cases(), lent_copy_cases(), reserve_cases(), withdrawal_cases()})
    cases.insert(cases.end(), some.begin(), some.end());
  int wrong = 0;
  int noticed = 0;
  std::size_t states = 0;
  for (const Case& one : cases) {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = one.run(one.ranks, one.number);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const bool is_right = one.broken.empty() == outcome.violation.empty();
    if (one.broken.empty()) states += outcome.states;
    if (!one.broken.empty() && is_right) ++noticed;
    std::printf("%-10s %d ranks  %-62s %10zu states %6.1f s  %s\n", one.protocol.c_str(), one.ranks,
                one.broken.empty() ? "as it is" : one.broken.c_str(), outcome.states, seconds,
                outcome.violation.empty() ? "no violation" : outcome.violation.c_str());
    std::fflush(stdout);
    if (!is_right || (shows_traces && !one.broken.empty())) print_trace(outcome);
    if (!is_right) ++wrong;
  }
  std::printf("%zu states of the protocols as they are, %d broken ones noticed, %d wrong\n", states, noticed, wrong);
  return wrong == 0 ? 0 : 1;
}
