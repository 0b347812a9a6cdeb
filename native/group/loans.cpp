#include "group/loans.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "group/group.hpp"

namespace shim {

Loans::Loans(Group& group, LentFor use) : group_(group), use_(use) { SharedAllocation::add_lender(*this); }

Loans::~Loans() { SharedAllocation::remove_lender(*this); }

unsigned Loans::lend(const std::byte* data, std::size_t bytes, Place& place) {
  place = {};
  if (bytes == 0) return lent;
  const std::optional<SharedPlace> found = SharedAllocation::find(data, bytes);
  if (!found) return 0;
  const std::lock_guard lock(lending_);
  if (!has_table_ && !(has_table_ = group_.reserve_lent(use_))) return 0;
  auto known = lent_.find(found->allocation);
  if (known == lent_.end()) {
    const std::optional<std::uint64_t> slot = slot_to_use();
    if (!slot) return 0;
    LentAllocation& entry = group_.lent_by(group_.rank(), use_)[*slot];
    if (lent_.erase(entry.number.load()) > 0) cease_to_lend(*slot);  // it will be lent anew when it is used again
    known = lent_.emplace(found->allocation, Lent{*slot, false}).first;
    entry.bytes = found->bytes;
    entry.inode = found->inode;
    entry.file = found->file;
    entry.number.store(found->allocation);
  }
  placed_.push_back(known->second.slot);
  place = {found->allocation, known->second.slot, found->offset, bytes};
  if (known->second.confirmed) return lent;
  unconfirmed_.push_back(found->allocation);
  return lent | lent_now;
}

std::optional<std::uint64_t> Loans::slot_to_use() {
  std::optional<std::uint64_t> oldest;
  for (std::uint64_t i = 0; i < lent_allocations; ++i) {
    const std::uint64_t slot = (next_slot_ + i) % lent_allocations;
    const bool is_free = group_.lent_by(group_.rank(), use_)[slot].number.load() == 0;
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
  for (const std::uint64_t slot : placed_)
    SharedAllocation::give_up(group_.lent_by(group_.rank(), use_)[slot].number.load());
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

std::shared_ptr<std::byte> Loans::map(int rank, const Place& place) {
  if (place.slot >= lent_allocations) return nullptr;
  const std::lock_guard lock(mapping_);
  Mapped& known = mapped_[static_cast<std::uint64_t>(rank) * lent_allocations + place.slot];
  if (known.segment == nullptr || known.allocation != place.allocation) known = {place.allocation, attach(rank, place)};
  has_mapped_.store(true);
  const std::shared_ptr<Segment>& segment = known.segment;
  if (segment == nullptr || place.bytes > segment->size() || place.offset > segment->size() - place.bytes)
    return nullptr;
  return {segment, segment->data() + place.offset};
}

std::shared_ptr<Segment> Loans::attach(int rank, const Place& place) const {
  const LentAllocation& entry = group_.lent_by(rank, use_)[place.slot];
  const std::uint64_t bytes = entry.bytes.load();
  const std::uint64_t inode = entry.inode.load();
  const int process = group_.peers().process_of(rank);
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(entry.file.load());
  Descriptor file(process == 0 ? -1 : ::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status{};
  // A slot may be lent anew meanwhile: where more is lent at a time than there are slots, or what was lent is freed.
  if (entry.number.load() != place.allocation) return nullptr;
  if (!file || ::fstat(file.get(), &status) != 0 || status.st_ino != inode) return nullptr;
  try {
    auto segment = std::make_shared<Segment>(Segment::attach(std::move(file), bytes));
    segment->close_file();
    segment->populate();
    return segment;
  } catch (const Failure&) {
    return nullptr;
  }
}

void Loans::drop_if_taken_back() {
  const std::lock_guard lock(mapping_);
  std::uint64_t taken_back = 0;
  for (int rank = 0; rank < group_.size(); ++rank) taken_back += group_.direct(rank).taken_back.load();
  if (std::exchange(seen_taken_back_, taken_back) == taken_back) return;
  std::erase_if(mapped_, [this](const auto& entry) {
    const auto rank = static_cast<int>(entry.first / lent_allocations);
    return group_.lent_by(rank, use_)[entry.first % lent_allocations].number.load() != entry.second.allocation;
  });
  has_mapped_.store(!mapped_.empty());
}

void Loans::cease_to_lend(std::uint64_t slot) {
  group_.lent_by(group_.rank(), use_)[slot].number.store(0);
  group_.direct(group_.rank()).taken_back.fetch_add(1);
}

}  // namespace shim
