#include "platform/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "platform/failure.hpp"
#include "platform/process.hpp"

namespace shim {
namespace {

constexpr int wanted_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void fail(const std::string& what) {
  const bool is_want_of_memory = errno == ENOMEM || errno == ENOSPC;
  throw Failure(is_want_of_memory ? FailureKind::memory : FailureKind::engine, what + ": " + std::strerror(errno));
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Segment Segment::create(std::size_t bytes, Inheritance inheritance) {
  Descriptor file(::memfd_create("shim", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) fail("cannot create shared memory");
  if (::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) != 0)
    fail("cannot reserve " + std::to_string(bytes) + " bytes of shared memory");
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

void Segment::populate() {
#if defined(MADV_POPULATE_WRITE)
  ::madvise(data_, bytes_, MADV_POPULATE_WRITE);  // older kernels refuse, and the pages come when they are touched
#endif
}

}  // namespace shim
