// Places at which a test has a rank end or stop, in builds with SHIM_FAULT_POINTS; in all others they are nothing.
#pragma once

namespace shim {

// SHIM_FAULT says "<point> <action> <which>": when this process comes to that point the which-th time, it writes the
// time, CLOCK_MONOTONIC in nanoseconds, into the file SHIM_FAULT_NOTE and does "kill", "segv", "exit" or "stop", or
// goes on after 5 seconds for "late".
#if defined(SHIM_FAULT_POINTS)
void fault_point(const char* name);
#else
inline void fault_point(const char* /* name */) {}
#endif

}  // namespace shim
