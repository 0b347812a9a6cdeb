#include "platform/fault_points.hpp"

#if defined(SHIM_FAULT_POINTS)

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

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
  if (action == "late") std::this_thread::sleep_for(std::chrono::seconds(5));
  if (action == "exit") ::_exit(3);
  if (action == "stop") ::raise(SIGSTOP);  // this thread first, so that it goes no further
  if (action == "segv") ::signal(SIGSEGV, SIG_DFL);
  if (action == "segv") ::kill(::getpid(), SIGSEGV);  // this thread may block it
  if (action == "kill") ::kill(::getpid(), SIGKILL);
}

}  // namespace shim

#endif
