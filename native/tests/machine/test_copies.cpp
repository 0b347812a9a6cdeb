// Copies that go past the caches: every byte, and no other.
#include "machine/copies.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "machine/caches.hpp"
#include "machine/prefetch.hpp"
#include "tests/check.hpp"

using namespace shim;

SHIM_TEST(large_outputs_are_streamed) {
  Thresholds thresholds{};
  thresholds.stream = 1000;
  CHECK(!OutputCopy(1000, thresholds).streams());
  CHECK(OutputCopy(1001, thresholds).streams());
}

SHIM_TEST(sizes_of_caches_are_read_as_the_kernel_writes_them) {
  CHECK_EQUAL(bytes_of_cache("32768K"), std::size_t{32} << 20);
  CHECK_EQUAL(bytes_of_cache("4M"), std::size_t{4} << 20);
  for (const char* other : {"", "K", "32768", "12T", "8KB"}) CHECK_EQUAL(bytes_of_cache(other), std::size_t{0});
  const Caches caches = caches_of_processor();
  CHECK(0 < caches.second && caches.second <= caches.last);
}

SHIM_TEST(claiming_changes_no_byte) {
  std::vector<std::byte> data(1000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(1 + i % 255);
  const std::vector<std::byte> before = data;
  for (std::size_t start = 0; start < 70; ++start)
    for (const std::size_t bytes : {0, 1, 63, 64, 65, 930}) claim_lines(data.data() + start, bytes);
  CHECK(data == before);
}

SHIM_TEST(claiming_writes_to_every_line) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  auto* const data = static_cast<std::byte*>(memory);
  CHECK_EQUAL(::mprotect(data + page, page, PROT_READ), 0);
  const auto is_refused = [data](std::size_t start, std::size_t bytes) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGSEGV, SIG_DFL);
      claim_lines(data + start, bytes);
      ::_exit(0);
    }
    int status = 0;
    CHECK_EQUAL(::waitpid(child, &status, 0), child);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  };
  CHECK(!is_refused(0, page));
  CHECK(is_refused(0, page + 1));
  CHECK(is_refused(page, 1));
  CHECK(is_refused(page - 64, 128));
  ::munmap(memory, 2 * page);
}

SHIM_TEST(streaming_copies_every_byte_and_no_other) {
  std::vector<std::byte> from(1000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(1 + i % 255);
  for (std::size_t start = 0; start < 70; ++start)
    for (const std::size_t bytes : {0, 1, 63, 64, 65, 127, 128, 500}) {
      std::vector<std::byte> to(700);
      stream_bytes(to.data() + start, from.data() + 7, bytes);
      finish_streaming();
      for (std::size_t i = 0; i < to.size(); ++i)
        CHECK(to[i] == (i >= start && i < start + bytes ? from[7 + i - start] : std::byte{0}));
    }
}
