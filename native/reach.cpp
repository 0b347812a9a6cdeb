#include "reach.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "group.hpp"
#include "watcher.hpp"

namespace shim {
namespace {

constexpr std::size_t most_at_once = 16 * 1024 * 1024;  // bytes that one system call copies, which nothing interrupts

// The number of the process in this pid namespace; 0 when it has none.
int process_behind(const Descriptor& pidfd) {
  std::ifstream facts("/proc/self/fdinfo/" + std::to_string(pidfd.get()));
  for (std::string line; std::getline(facts, line);)
    if (line.rfind("Pid:", 0) == 0) return std::max(0, std::atoi(line.c_str() + 4));
  return 0;
}

// As process_vm_readv, of which it makes as many as are needed; whether all was copied.
bool copy_from_process(int process, std::uint64_t address, std::byte* to, std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t wanted = std::min(bytes, most_at_once);
    const iovec here{to, wanted};
    const iovec there{reinterpret_cast<void*>(address), wanted};
    const ssize_t copied = ::process_vm_readv(process, &here, 1, &there, 1, 0);
    if (copied <= 0) return false;
    to += copied;
    address += static_cast<std::uint64_t>(copied);
    bytes -= static_cast<std::size_t>(copied);
  }
  return true;
}

}  // namespace

Reach::Reach(Group& group)
    : group_(group),
      processes_(static_cast<std::size_t>(group.size()), static_cast<int>(::getpid())),
      word_(std::make_unique<std::atomic<std::uint64_t>>()) {
  DirectLine& line = group_.direct(group_.rank());
  word_->store((reinterpret_cast<std::uint64_t>(word_.get()) << 16) + static_cast<std::uint64_t>(::getpid()) + 1);
  line.word_at = reinterpret_cast<std::uint64_t>(word_.get());
  line.word.store(word_->load());
  SharedAllocation::add_lender(*this);
}

Reach::~Reach() { SharedAllocation::remove_lender(*this); }

void Reach::set_processes(const std::vector<Descriptor>& pidfds) {
  for (std::size_t rank = 0; rank < pidfds.size(); ++rank)
    if (pidfds[rank]) processes_[rank] = process_behind(pidfds[rank]);
}

unsigned Reach::lend(const std::byte* data, std::size_t bytes, Place& place) {
  place = {0, 0, 0, reinterpret_cast<std::uint64_t>(data)};
  if (bytes == 0) return offered | lent;
  const std::optional<SharedPlace> found = SharedAllocation::find(data, bytes);
  if (!found) return offered;
  const std::lock_guard lock(lending_);
  auto known = lent_.find(found->allocation);
  if (known == lent_.end()) {
    const std::uint64_t slot = next_slot_++ % lent_allocations;
    LentAllocation& entry = group_.lent_by(group_.rank())[slot];
    lent_.erase(entry.number.load());  // the one that was lent first; it will be lent anew when it is used again
    entry.bytes = found->bytes;
    entry.inode = found->inode;
    entry.file = found->file;
    entry.number.store(found->allocation);
    known = lent_.emplace(found->allocation, Lent{slot, false}).first;
  }
  place = {found->allocation, known->second.slot, found->offset, place.address};
  if (known->second.confirmed) return offered | lent;
  unconfirmed_.push_back(found->allocation);
  return offered | lent | lent_now;
}

void Reach::confirm_lent() {
  const std::lock_guard lock(lending_);
  for (const std::uint64_t allocation : unconfirmed_)
    if (const auto known = lent_.find(allocation); known != lent_.end()) known->second.confirmed = true;
}

void Reach::allocation_is_freed(std::uint64_t allocation) {
  const std::lock_guard lock(lending_);
  const auto known = lent_.find(allocation);
  if (known == lent_.end() || !group_.is_of_this_process()) return;
  group_.lent_by(group_.rank())[known->second.slot].number.store(0);
  lent_.erase(known);
}

std::uint64_t Reach::key_of(int rank, std::uint64_t slot) const {
  return static_cast<std::uint64_t>(rank) * lent_allocations + slot;
}

std::byte* Reach::map(int rank, const Place& place) {
  if (place.slot >= lent_allocations) return nullptr;
  const std::uint64_t key = key_of(rank, place.slot);
  auto known = mapped_.find(key);
  if (known != mapped_.end() && known->second.allocation != place.allocation) {
    mapped_.erase(known);
    known = mapped_.end();
  }
  if (known == mapped_.end()) {
    const LentAllocation& entry = group_.lent_by(rank)[place.slot];
    const int process = processes_[static_cast<std::size_t>(rank)];
    const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(entry.file);
    Descriptor file(process == 0 ? -1 : ::open(path.c_str(), O_RDWR | O_CLOEXEC));
    struct stat status{};
    if (entry.number.load() != place.allocation) return nullptr;  // one operation lends more than there are slots
    if (!file || ::fstat(file.get(), &status) != 0 || status.st_ino != entry.inode) return nullptr;
    try {
      Segment segment = Segment::attach(std::move(file), entry.bytes);
      segment.close_file();
      segment.populate();
      known = mapped_.emplace(key, Mapped{place.allocation, std::move(segment)}).first;
    } catch (const Failure&) {
      return nullptr;
    }
  }
  const Segment& segment = known->second.segment;
  return place.offset <= segment.size() ? segment.data() + place.offset : nullptr;
}

void Reach::drop_freed_now() {
  std::erase_if(mapped_, [this](const auto& entry) {
    const auto rank = static_cast<int>(entry.first / lent_allocations);
    return group_.lent_by(rank)[entry.first % lent_allocations].number.load() != entry.second.allocation;
  });
}

bool Reach::can_copy() const {
  for (int rank = 0; rank < group_.size(); ++rank) {
    const DirectLine& line = group_.direct(rank);
    const int process = processes_[static_cast<std::size_t>(rank)];
    std::uint64_t word = 0;
    if (process == 0) return false;
    if (!copy_from_process(process, line.word_at, reinterpret_cast<std::byte*>(&word), sizeof(word))) return false;
    if (word != line.word.load()) return false;
  }
  return true;
}

void Reach::copy(int rank, std::uint64_t address, std::byte* to, std::size_t bytes) const {
  if (copy_from_process(processes_[static_cast<std::size_t>(rank)], address, to, bytes)) return;
  const int error = errno;
  if (error == ESRCH) group_.mark_lost(rank);
  check_present(rank);
  group_.fail(Failure(FailureKind::engine, "the memory of rank " + std::to_string(rank) +
                                               " can no longer be read: " + std::strerror(error) +
                                               "\nThe group can no longer be used."));
}

void Reach::check_present(int rank) const {
  if (Watcher::instance().has_ended(group_, rank)) group_.mark_lost(rank);
  group_.check_present(rank);
}

}  // namespace shim
