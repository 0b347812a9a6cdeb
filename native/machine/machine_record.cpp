#include "machine/machine_record.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "machine/caches.hpp"
#include "platform/segment.hpp"

namespace shim {
namespace {

constexpr std::string_view format = "shim machine 3";
constexpr std::size_t most_bytes = 4096;
constexpr mode_t written_by_others = S_IWGRP | S_IWOTH;

std::string text_of(const std::string& machine, const Speeds& speeds) {
  return std::string(format) + "\n" + machine + "\nline_ns " + std::to_string(speeds.line_ns) + "\ncopy_bytes_per_us " +
         std::to_string(speeds.copy_bytes_per_us) + "\ncross_bytes_per_us " +
         std::to_string(speeds.cross_bytes_per_us) + "\nrewrite_ns " + std::to_string(speeds.rewrite_ns) +
         "\nclaimed_rewrite_ns " + std::to_string(speeds.claimed_rewrite_ns) + "\n";
}

// The number behind the first `label` of `text`.
std::uint64_t number_behind(std::string_view label, std::string_view text) {
  std::uint64_t number = 0;
  const std::size_t at = text.find(label);
  if (at != std::string_view::npos) std::from_chars(text.data() + at + label.size(), text.data() + text.size(), number);
  return number;
}

std::string hexadecimal_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, which is the same in every program
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

bool write_all(const Descriptor& file, std::string_view text) {
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  return written >= 0 && static_cast<std::size_t>(written) == text.size();
}

void make_private_folders(const std::filesystem::path& folder) {
  if (folder.empty() || ::access(folder.c_str(), F_OK) == 0) return;
  make_private_folders(folder.parent_path());
  ::mkdir(folder.c_str(), S_IRWXU);
}

}  // namespace

std::string name_of_machine() {
  // Of the first processor, as x86 and ARM call it; the others' lines say the same, and how fast each runs just now.
  constexpr std::string_view facts[] = {"vendor_id",       "cpu family", "model",       "stepping",
                                        "CPU implementer", "CPU part",   "CPU variant", "CPU revision"};
  std::string name;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::size_t colon = line.find(':');
    const std::string_view label = std::string_view(line).substr(0, line.find_first_of("\t:"));
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    const bool counts =
        label.rfind("model name", 0) == 0 || std::find(std::begin(facts), std::end(facts), label) != std::end(facts);
    if (counts) name += line.substr(colon + 2) + ", ";
  }
  const Caches caches = caches_of_processor();
  return name + std::to_string(::sysconf(_SC_NPROCESSORS_CONF)) + " processors, caches of " +
         std::to_string(caches.second) + " and " + std::to_string(caches.last) + " bytes";
}

MachineRecord::MachineRecord(const std::string& folder)
    : machine_(name_of_machine()),
      folder_(folder),
      path_(folder.empty() ? "" : folder + "/machine-" + hexadecimal_hash(machine_)) {}

std::optional<Speeds> MachineRecord::read() const {
  if (path_.empty()) return std::nullopt;
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));  // it may be anything
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  if (status.st_uid != ::geteuid() || (status.st_mode & written_by_others) != 0) return std::nullopt;
  char buffer[most_bytes];
  const ssize_t length = ::read(file.get(), buffer, sizeof(buffer));
  if (length <= 0) return std::nullopt;
  const std::string_view text(buffer, static_cast<std::size_t>(length));
  const Speeds speeds{number_behind("\nline_ns ", text), number_behind("\ncopy_bytes_per_us ", text),
                      number_behind("\ncross_bytes_per_us ", text), number_behind("\nrewrite_ns ", text),
                      number_behind("\nclaimed_rewrite_ns ", text)};
  // Only what is letter by letter what would be written for these numbers.
  return are_plausible(speeds) && text == text_of(machine_, speeds) ? std::optional(speeds) : std::nullopt;
}

bool MachineRecord::write(const Speeds& speeds) const {
  if (path_.empty()) return false;
  make_private_folders(folder_);
  std::string made = path_ + ".XXXXXX";
  const Descriptor file(::mkostemp(made.data(), O_CLOEXEC));  // which only this user may read and write
  if (!file) return false;
  if (write_all(file, text_of(machine_, speeds)) && ::rename(made.c_str(), path_.c_str()) == 0) return true;
  ::unlink(made.c_str());
  return false;
}

}  // namespace shim
