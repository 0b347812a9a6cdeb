#include "machine/caches.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

namespace shim {
namespace {

constexpr Caches usual{1024 * 1024, 32 * 1024 * 1024};
constexpr int levels_and_kinds = 8;  // more than any processor has

}  // namespace

std::size_t bytes_of_cache(std::string_view size) {
  std::size_t number = 0;
  const char* end = size.data() + size.size();
  const char* unit = std::from_chars(size.data(), end, number).ptr;
  if (unit == size.data() || unit == end) return 0;
  const std::string_view rest(unit, static_cast<std::size_t>(end - unit));
  if (rest == "K") return number * 1024;
  return rest == "M" ? number * 1024 * 1024 : 0;
}

// sysconf(_SC_LEVEL3_CACHE_SIZE) will not do: on AMD's processors glibc answers with the caches of the whole socket, of
// which a processor uses one.
Caches caches_of_processor() {
  Caches found{0, 0};
  for (int index = 0; index < levels_and_kinds; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    std::ifstream size_file(folder + "/size");
    std::ifstream level_file(folder + "/level");
    std::string size;
    int level = 0;
    if (!(size_file >> size)) continue;
    found.last = std::max(found.last, bytes_of_cache(size));
    if (level_file >> level && level == 2) found.second = bytes_of_cache(size);
  }
  return {found.second > 0 ? found.second : usual.second, found.last > 0 ? found.last : usual.last};
}

}  // namespace shim
