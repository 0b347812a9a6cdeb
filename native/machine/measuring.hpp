// The speeds of this machine, measured.
#pragma once

#include <optional>

#include "machine/machine.hpp"

namespace shim {

// Takes about 0.5 ms; a second thread takes part, on another processor. Nothing where there is none for it, or so much
// else is running that the figures would say nothing.
std::optional<Speeds> measure_speeds();

}  // namespace shim
