// Prints how many nanoseconds an 8-byte all_reduce of two ranks takes, of which each has a thread and a processor.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

constexpr int batches = 200;
constexpr int calls = 2000;

void stay_on(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  ::sched_setaffinity(0, sizeof(only), &only);
}

}  // namespace

int main() {
  std::vector<double> nanoseconds;
  on_ranks(2, [&](Rank& me) {
    stay_on(me.rank());
    std::vector<std::int64_t> data = {0};
    for (int batch = 0; batch < batches; ++batch) {
      const auto began = std::chrono::steady_clock::now();
      for (int call = 0; call < calls; ++call) me.progress().run_now(*summing(me, data));
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
      if (me.rank() == 0) nanoseconds.push_back(took.count() / calls);
    }
  });
  std::nth_element(nanoseconds.begin(), nanoseconds.begin() + batches / 2, nanoseconds.end());
  std::printf("%.1f\n", nanoseconds[batches / 2]);
}
