// What the machine is like, as far as the engine's thresholds depend on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace shim {

// What has to be measured.
struct Speeds {
  std::uint64_t line_ns;             // nanoseconds of a cache line's way from one processor to another
  std::uint64_t copy_bytes_per_us;   // what one processor copies within its own caches
  std::uint64_t cross_bytes_per_us;  // what the kernel copies between processes for one, there; 0 where it does not
  std::uint64_t rewrite_ns;          // nanoseconds to write 32 KiB anew that another processor has read, and
  std::uint64_t claimed_rewrite_ns;  // likewise where that one has claimed the lines: see claim_lines in prefetch.hpp

  bool operator==(const Speeds&) const = default;
};

struct Machine {
  Speeds speeds;
  std::size_t second_cache;  // bytes
  std::size_t last_cache;    // bytes
};

// Those of a processor of these years, where they cannot be measured or shall not be.
inline constexpr Speeds usual_speeds{80, 64'000, 8'000, 2'000, 2'000};

// Whether any machine may have them; what is measured on a busy one may be far from it.
bool are_plausible(const Speeds& speeds);

// Where what has been measured is kept: a folder, or nowhere if it is empty. Nothing: no measuring, the usual is taken.
using Measurements = std::optional<std::string>;

// Measures, in less than two milliseconds, unless this process or an earlier one on such a machine has. Never fails.
Machine this_machine(const Measurements& measurements);

}  // namespace shim
