// What is measured of the machine, and the file that it is kept in.
#include "machine/machine.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "machine/machine_record.hpp"
#include "machine/measuring.hpp"
#include "tests/check.hpp"

using namespace shim;
namespace fs = std::filesystem;

namespace {

constexpr Speeds some{123, 45'678, 9'012, 345, 67};

// An empty folder that goes with it.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/shim-test-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string path() const { return path_; }

 private:
  std::string path_;
};

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put(const std::string& path, const std::string& content) { std::ofstream(path) << content; }

mode_t mode_of(const std::string& path) {
  struct stat status{};
  CHECK_EQUAL(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

std::size_t files_in(const std::string& path) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

}  // namespace

SHIM_TEST(what_is_measured_is_plausible_or_nothing) {
  for (int time = 0; time < 5; ++time)
    if (const std::optional<Speeds> speeds = measure_speeds()) CHECK(are_plausible(*speeds));
}

SHIM_TEST(a_process_with_one_processor_measures_nothing) {
  std::optional<Speeds> speeds = some;
  std::thread([&speeds] {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(::sched_getcpu(), &only);
    CHECK_EQUAL(::sched_setaffinity(0, sizeof(only), &only), 0);
    speeds = measure_speeds();
  }).join();
  CHECK(!speeds);
}

SHIM_TEST(what_is_written_is_read_by_its_owner_alone) {
  const Folder folder;
  const MachineRecord record(folder.path() + "/a/b");
  CHECK(!record.read());
  CHECK(record.write(some));
  CHECK(record.read() == some);
  CHECK(record.write({7, 8'000, 0, 9, 10}));  // over the other
  CHECK(record.read() == (Speeds{7, 8'000, 0, 9, 10}));
  CHECK_EQUAL(mode_of(record.path()), mode_t{0600});
  CHECK_EQUAL(mode_of(folder.path() + "/a/b"), mode_t{0700});
  CHECK_EQUAL(mode_of(folder.path() + "/a"), mode_t{0700});
  CHECK_EQUAL(files_in(folder.path() + "/a/b"), std::size_t{1});
}

SHIM_TEST(what_is_not_as_it_was_written_does_not_count) {
  const Folder folder;
  const MachineRecord record(folder.path());
  CHECK(record.write(some));
  const std::string good = content_of(record.path());
  const auto replaced = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    CHECK(text.find(from) != std::string::npos);
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& bad :
       {std::string(), good.substr(0, good.size() - 1), good + "\n", good + good, replaced("machine 3", "machine 2"),
        replaced("123", "-123"), replaced("123", "0"), replaced("123", "123456"), replaced("123", "0123"),
        replaced("45678", "99999999999999999999999"), replaced("9012", "9012000"), replaced(" 345", " 0"),
        replaced(" 67", " 100001"), replaced("processors", "of them"), std::string(100'000, 'x')}) {
    put(record.path(), bad);
    CHECK(!record.read());
  }
  put(record.path(), good);
  CHECK(record.read() == some);
}

SHIM_TEST(what_others_may_have_written_does_not_count) {
  const Folder folder;
  const MachineRecord record(folder.path());
  CHECK(record.write(some));
  CHECK_EQUAL(::chmod(record.path().c_str(), 0620), 0);
  CHECK(!record.read());
  CHECK_EQUAL(::chmod(record.path().c_str(), 0600), 0);
  fs::rename(record.path(), folder.path() + "/elsewhere");
  fs::create_symlink(folder.path() + "/elsewhere", record.path());
  CHECK(!record.read());
  CHECK(record.write(some));  // replaces the link, not what it leads to
  CHECK(fs::is_regular_file(fs::symlink_status(record.path())));
  fs::remove(record.path());
  CHECK_EQUAL(::mkfifo(record.path().c_str(), 0600), 0);
  CHECK(!record.read());  // and does not wait for a writer
  if (::geteuid() != 0) return;
  CHECK(record.write(some));
  CHECK_EQUAL(::chown(record.path().c_str(), 1, 1), 0);
  CHECK(!record.read());
}

SHIM_TEST(where_it_cannot_be_written_nothing_happens) {
  const Folder folder;
  put(folder.path() + "/file", "");
  for (const std::string& place :
       {std::string(), folder.path() + "/file", folder.path() + "/file/below", std::string("/proc/none")}) {
    const MachineRecord record(place);
    CHECK(!record.write(some));
    CHECK(!record.read());
  }
  const MachineRecord record(folder.path());
  fs::create_directory(record.path());
  CHECK(!record.write(some));
  CHECK_EQUAL(files_in(folder.path()), std::size_t{2});  // nothing half-made
}

SHIM_TEST(a_machine_is_as_its_record_says) {
  const Folder folder;
  CHECK(MachineRecord(folder.path()).write(some));
  CHECK(this_machine(folder.path()).speeds == some);
  CHECK(this_machine(std::nullopt).speeds == usual_speeds);
  CHECK(MachineRecord(folder.path()).write({7, 8'000, 0}));
  CHECK(this_machine(folder.path()).speeds == some);  // once read, always the same in this process
}

SHIM_TEST(the_first_process_leaves_what_it_has_measured) {
  const Folder folder;
  const Machine machine = this_machine(folder.path() + "/new");
  CHECK(are_plausible(machine.speeds));
  CHECK(machine.second_cache > 0 && machine.last_cache >= machine.second_cache);
  if (const auto kept = MachineRecord(folder.path() + "/new").read()) CHECK(*kept == machine.speeds);
}
