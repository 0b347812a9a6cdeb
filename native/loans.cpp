#include "loans.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "group.hpp"
#include "process.hpp"

namespace shim {

Loans::Loans(Group& group)
    : group_(group), processes_(static_cast<std::size_t>(group.size()), static_cast<int>(::getpid())) {
  SharedAllocation::add_lender(*this);
}

Loans::~Loans() { SharedAllocation::remove_lender(*this); }

void Loans::set_processes(const std::vector<Descriptor>& pidfds) {
  for (std::size_t rank = 0; rank < pidfds.size(); ++rank)
    if (pidfds[rank]) processes_[rank] = number_of(pidfds[rank].get());
}

unsigned Loans::lend(const std::byte* data, std::size_t bytes, Place& place) {
  place = {};
  if (bytes == 0) return lent;
  const std::optional<SharedPlace> found = SharedAllocation::find(data, bytes);
  if (!found) return 0;
  const std::lock_guard lock(lending_);
  auto known = lent_.find(found->allocation);
  if (known == lent_.end()) {
    const std::optional<std::uint64_t> slot = slot_to_use();
    if (!slot) return 0;
    LentAllocation& entry = group_.lent_by(group_.rank())[*slot];
    if (lent_.erase(entry.number.load()) > 0) cease_to_lend(*slot);  // it will be lent anew when it is used again
    known = lent_.emplace(found->allocation, Lent{*slot, false}).first;
    entry.bytes = found->bytes;
    entry.inode = found->inode;
    entry.file = found->file;
    entry.number.store(found->allocation);
  }
  placed_.push_back(known->second.slot);
  place = {found->allocation, known->second.slot, found->offset};
  if (known->second.confirmed) return lent;
  unconfirmed_.push_back(found->allocation);
  return lent | lent_now;
}

std::optional<std::uint64_t> Loans::slot_to_use() {
  std::optional<std::uint64_t> oldest;
  for (std::uint64_t i = 0; i < lent_allocations; ++i) {
    const std::uint64_t slot = (next_slot_ + i) % lent_allocations;
    const bool is_free = group_.lent_by(group_.rank())[slot].number.load() == 0;
    if (is_free) {
      oldest = slot;
      break;
    }
    if (!oldest && std::find(placed_.begin(), placed_.end(), slot) == placed_.end()) oldest = slot;
  }
  if (oldest) next_slot_ = *oldest + 1;
  return oldest;
}

void Loans::give_up() const {
  for (const std::uint64_t slot : placed_) SharedAllocation::give_up(group_.lent_by(group_.rank())[slot].number.load());
}

void Loans::confirm() {
  const std::lock_guard lock(lending_);
  for (const std::uint64_t allocation : unconfirmed_)
    if (const auto known = lent_.find(allocation); known != lent_.end()) known->second.confirmed = true;
}

void Loans::allocation_is_freed(std::uint64_t allocation) {
  const std::lock_guard lock(lending_);
  const auto known = lent_.find(allocation);
  if (known == lent_.end() || !group_.is_of_this_process()) return;
  cease_to_lend(known->second.slot);
  lent_.erase(known);
}

std::byte* Loans::map(int rank, const Place& place) {
  if (place.slot >= lent_allocations) return nullptr;
  const std::uint64_t key = static_cast<std::uint64_t>(rank) * lent_allocations + place.slot;
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

void Loans::drop_if_taken_back() {
  std::uint64_t taken_back = 0;
  for (int rank = 0; rank < group_.size(); ++rank) taken_back += group_.direct(rank).taken_back.load();
  if (std::exchange(seen_taken_back_, taken_back) == taken_back) return;
  std::erase_if(mapped_, [this](const auto& entry) {
    const auto rank = static_cast<int>(entry.first / lent_allocations);
    return group_.lent_by(rank)[entry.first % lent_allocations].number.load() != entry.second.allocation;
  });
}

void Loans::cease_to_lend(std::uint64_t slot) {
  group_.lent_by(group_.rank())[slot].number.store(0);
  group_.direct(group_.rank()).taken_back.fetch_add(1);
}

}  // namespace shim
