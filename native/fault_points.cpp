#include "fault_points.hpp"

#if defined(SHIM_FAULT_POINTS)

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace shim {

void fault_point(const char* name) {
  const char* fault = std::getenv("SHIM_FAULT");
  if (fault == nullptr) return;
  std::istringstream words(fault);
  std::string point, action;
  int which = 1;
  words >> point >> action >> which;
  static std::atomic<int> passed{0};
  if (point != name || ++passed != which) return;
  std::ofstream(std::getenv("SHIM_FAULT_NOTE")) << std::chrono::steady_clock::now().time_since_epoch().count();
  if (action == "exit") ::_exit(3);
  if (action == "segv") ::signal(SIGSEGV, SIG_DFL);
  // To this thread, so that it goes no further; a stop is of all threads all the same.
  ::raise(action == "kill" ? SIGKILL : action == "segv" ? SIGSEGV : SIGSTOP);
}

}  // namespace shim

#endif
