// Processes that wait for each other in a circle, in whichever groups.
#pragma once

#include <chrono>
#include <string>

namespace shim {

// Asks the process at `address` for whom it waits, those what they wait for, and so on, until `until`. Returns a circle
// that was found, as told_circle() tells it; all of its waits were there at one time. Empty where none was found.
std::string circle_report(const std::string& address, std::chrono::steady_clock::time_point until);

}  // namespace shim
