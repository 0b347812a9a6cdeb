#include "machine/machine.hpp"

#include <map>
#include <mutex>

#include "machine/caches.hpp"
#include "machine/machine_record.hpp"
#include "machine/measuring.hpp"

namespace shim {
namespace {

Speeds speeds_of_machine(const std::string& folder) {
  const MachineRecord record(folder);
  if (const std::optional<Speeds> kept = record.read()) return *kept;
  const std::optional<Speeds> measured = measure_speeds();
  if (measured) record.write(*measured);
  return measured.value_or(usual_speeds);
}

}  // namespace

bool are_plausible(const Speeds& speeds) {
  return speeds.line_ns >= 5 && speeds.line_ns <= 1'000 && speeds.copy_bytes_per_us >= 1'000 &&
         speeds.copy_bytes_per_us <= 1'000'000 && speeds.cross_bytes_per_us <= 1'000'000 && speeds.rewrite_ns >= 1 &&
         speeds.rewrite_ns <= 100'000 && speeds.claimed_rewrite_ns >= 1 && speeds.claimed_rewrite_ns <= 100'000;
}

Machine this_machine(const Measurements& measurements) {
  const Caches caches = caches_of_processor();
  if (!measurements) return {usual_speeds, caches.second, caches.last};
  static std::mutex mutex;
  static std::map<std::string, Speeds> known;
  const std::lock_guard lock(mutex);
  auto found = known.find(*measurements);
  if (found == known.end()) found = known.emplace(*measurements, speeds_of_machine(*measurements)).first;
  return {found->second, caches.second, caches.last};
}

}  // namespace shim
