#include "caches.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

namespace shim {
namespace {

constexpr std::size_t usual_cache = 32 * 1024 * 1024;
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
std::size_t last_cache_bytes() {
  std::size_t largest = 0;
  for (int index = 0; index < levels_and_kinds; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    std::string size;
    if (file >> size) largest = std::max(largest, bytes_of_cache(size));
  }
  return largest > 0 ? largest : usual_cache;
}

}  // namespace shim
