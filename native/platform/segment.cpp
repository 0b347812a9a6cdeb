#include "platform/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "platform/failure.hpp"
#include "platform/process.hpp"

namespace shim {
namespace {

constexpr int wanted_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, which glibc has had later than Linux

[[noreturn]] void fail(const std::string& what) {
  const bool is_want_of_memory = errno == ENOMEM || errno == ENOSPC;
  throw Failure(is_want_of_memory ? FailureKind::memory : FailureKind::engine, what + ": " + std::strerror(errno));
}

// With an errno otherwise. In steps, because a signal ends a step and takes back what it has reserved.
bool allocate(int file, std::size_t start, std::size_t bytes) {
  constexpr std::size_t most = 16 * 1024 * 1024;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t step = std::min(most, bytes - done);
    if (::fallocate(file, 0, static_cast<off_t>(start + done), static_cast<off_t>(step)) == 0)
      done += step;
    else if (errno != EINTR)
      return false;
  }
  return true;
}

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Segment Segment::create(std::size_t bytes, Inheritance inheritance) { return create(bytes, bytes, inheritance); }

Segment Segment::create_in_part(std::size_t bytes, std::size_t reserved) {
  return create(bytes, reserved, Inheritance::by_nobody);
}

Segment Segment::create(std::size_t bytes, std::size_t reserved, Inheritance inheritance) {
  Descriptor file(::memfd_create("shim", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) fail("cannot create shared memory");
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) fail("cannot size shared memory");
  if (!allocate(file.get(), 0, reserved))
    fail("cannot reserve " + std::to_string(reserved) + " bytes of shared memory");
  if (::fcntl(file.get(), F_ADD_SEALS, wanted_seals) != 0) fail("cannot seal shared memory");
  return Segment(std::move(file), bytes, inheritance);
}

Segment Segment::attach(Descriptor file, std::size_t bytes) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) fail("cannot examine shared memory");
  if (static_cast<std::size_t>(status.st_size) != bytes)
    throw Failure(FailureKind::engine, "shared memory of rank 0 has " + std::to_string(status.st_size) +
                                           " bytes where " + std::to_string(bytes) + " are needed");
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & wanted_seals) != wanted_seals)
    throw Failure(FailureKind::engine, "shared memory of rank 0 is not sealed");
  return Segment(std::move(file), bytes, Inheritance::by_nobody);
}

Segment::Segment(Descriptor file, std::size_t bytes, Inheritance inheritance)
    : file_(std::move(file)), bytes_(bytes), inheritance_(inheritance), generation_(process_generation()) {
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (address == MAP_FAILED) fail("cannot map shared memory");
  data_ = static_cast<std::byte*>(address);
  if (inheritance == Inheritance::by_nobody) ::madvise(address, bytes, MADV_DONTFORK);
}

Segment::Segment(Segment&& other) noexcept
    : file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      inheritance_(other.inheritance_),
      generation_(other.generation_) {}

Segment::~Segment() {
  // In a forked child that inherits nothing the address is not mapped, or holds something of the child's own.
  const bool is_mapped = inheritance_ == Inheritance::by_children || generation_ == process_generation();
  if (data_ != nullptr && is_mapped) ::munmap(data_, bytes_);
}

bool Segment::reserve(std::size_t start, std::size_t bytes) const {
  const std::size_t page = page_bytes();
  const std::size_t first = start / page * page;
  const std::size_t length = start + bytes - first;
  if (::madvise(data_ + first, length, populate_write) == 0) return true;
  return file_ && allocate(file_.get(), first, length);  // pages that were reserved before one failed stay
}

void Segment::populate() {
  ::madvise(data_, bytes_, populate_write);  // older kernels refuse, and the pages come when they are touched
}

void Segment::close_file_if_spare() {
  if (::madvise(data_, 1, populate_write) == 0) close_file();
}

}  // namespace shim
