#include "platform/process.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "platform/failure.hpp"

namespace shim {
namespace {

std::atomic<std::uint64_t> generation{1};

void forked() { generation.fetch_add(1, std::memory_order_relaxed); }

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, forked);

// What the kernel writes for PIDFD_GET_INFO in its first version (linux/pidfd.h, from Linux 6.13 on).
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t control_group;
  std::uint32_t numbers[11];  // of the process, its parent and its users
  std::int32_t exit_code;     // from Linux 6.15 on
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t pidfd_info_exit = 1 << 3;
constexpr unsigned long pidfd_get_info = _IOWR(0xFF, 11, PidfdInfo);

// The fields of /proc/<number>/stat behind the process's name; its state is the first. Empty when there is no such
// process.
std::string facts_behind_name(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t end = line.rfind(") ");
  return end == std::string::npos ? "" : line.substr(end + 2);
}

// The status of a process that its parent has not asked for yet.
std::optional<int> status_of_zombie(int process) {
  std::istringstream facts(facts_behind_name(process));
  std::string fact;
  facts >> fact;
  if (fact != "Z") return std::nullopt;
  while (facts >> fact) {  // the status is the last field
  }
  return std::atoi(fact.c_str());
}

// The status of one that its parent has asked for.
std::optional<int> status_behind(int pidfd) {
  PidfdInfo info{};
  info.mask = pidfd_info_exit;
  if (::ioctl(pidfd, pidfd_get_info, &info) != 0 || (info.mask & pidfd_info_exit) == 0) return std::nullopt;
  return info.exit_code;
}

std::string name_of_signal(int number) {
  static constexpr std::pair<int, std::string_view> names[] = {
      {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"},
      {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"},
      {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"}, {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},
      {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"}};
  for (const auto& [known, name] : names)
    if (known == number) return std::string(name);
  return "signal " + std::to_string(number);
}

}  // namespace

std::uint64_t process_generation() { return generation.load(std::memory_order_relaxed); }

std::uint64_t pid_namespace() {
  struct stat status{};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

std::string state_of(int process) {
  const std::string facts = facts_behind_name(process);
  switch (facts.empty() ? '?' : facts[0]) {
    case 'R':
      return "running";
    case 'S':
    case 'D':
      return "sleeping";
    case 'T':
    case 't':
      return "stopped";
    default:
      return {};
  }
}

std::string how_it_ended(int pidfd, int process) {
  std::optional<int> status;
  for (int attempt = 0; attempt < 3 && !status; ++attempt) {  // its parent may ask for it between the two
    if (process > 0) status = status_of_zombie(process);
    if (!status) status = status_behind(pidfd);
  }
  if (!status) return {};
  if (WIFSIGNALED(*status)) {
    const bool by_force = WTERMSIG(*status) == SIGKILL;
    return "was killed by " + name_of_signal(WTERMSIG(*status)) +
           (by_force ? " (kill -9, or the kernel when memory ran out)" : "");
  }
  return "exited with status " + std::to_string(WEXITSTATUS(*status));
}

Descriptor pidfd_of(int process) { return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))); }

Descriptor pidfd_of_this_process() {
  Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!pidfd) throw Failure(FailureKind::engine, std::string("cannot open a pidfd: ") + std::strerror(errno));
  return pidfd;
}

int number_of(int pidfd) {
  std::ifstream facts("/proc/self/fdinfo/" + std::to_string(pidfd));
  for (std::string line; std::getline(facts, line);)
    if (line.rfind("Pid:", 0) == 0) return std::max(0, std::atoi(line.c_str() + 4));
  return 0;
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof(number), 0) != sizeof(number))
    throw Failure(FailureKind::engine, "the system gives no random number");
  return number;
}

bool read_memory(int process, std::uint64_t from, void* to, std::size_t bytes) {
  for (std::size_t copied = 0; copied < bytes;) {
    const iovec local{static_cast<std::byte*>(to) + copied, bytes - copied};
    const iovec remote{reinterpret_cast<void*>(from + copied), bytes - copied};
    const ssize_t count = ::process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (count <= 0) return false;
    copied += static_cast<std::size_t>(count);
  }
  return true;
}

bool can_read_ends(int process, std::uint64_t from, std::size_t bytes) {
  std::byte ends[2];
  const iovec local{ends, sizeof(ends)};
  const iovec remote[2] = {{reinterpret_cast<void*>(from), 1}, {reinterpret_cast<void*>(from + bytes - 1), 1}};
  return ::process_vm_readv(process, &local, 1, remote, 2, 0) == sizeof(ends);
}

}  // namespace shim
