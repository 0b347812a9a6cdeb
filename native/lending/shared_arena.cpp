#include "lending/shared_arena.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "platform/failure.hpp"

namespace shim {
namespace {

// A file is as large as all before it together, so that there are few. A limit, because one is given back as a whole.
constexpr std::size_t smallest_file = std::size_t{8} << 20;
constexpr std::size_t largest_file = std::size_t{64} << 20;  // unless one allocation needs more

constexpr int spare_descriptors = 64;  // left to the program

bool is_scarce(int descriptor) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  return static_cast<rlim_t>(descriptor) + spare_descriptors >= limit.rlim_cur;
}

}  // namespace

struct SharedArena::File {
  explicit File(std::size_t bytes) : memory(bytes) { gaps.emplace(0, bytes); }

  // Null when no gap is large enough. Takes the smallest that is, and the first of them.
  std::byte* take(std::size_t bytes) {
    auto best = gaps.end();
    for (auto gap = gaps.begin(); gap != gaps.end(); ++gap)
      if (gap->second >= bytes && (best == gaps.end() || gap->second < best->second)) best = gap;
    if (is_retired || best == gaps.end()) return nullptr;
    const auto [offset, size] = *best;
    taken.emplace(offset, bytes);
    gaps.erase(best);
    if (size > bytes) gaps.emplace(offset + bytes, size - bytes);
    allocated += bytes;
    return memory.data() + offset;
  }

  // `range` becomes a gap, in one piece with those beside it.
  void give_back(std::map<std::size_t, std::size_t>::iterator range) {
    std::size_t offset = range->first;
    std::size_t bytes = range->second;
    taken.erase(range);
    allocated -= bytes;
    auto next = gaps.lower_bound(offset);
    if (next != gaps.begin())
      if (const auto before = std::prev(next); before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        gaps.erase(before);
      }
    if (next != gaps.end() && offset + bytes == next->first) {
      bytes += next->second;
      gaps.erase(next);
    }
    gaps.emplace(offset, bytes);
  }

  // Another process may read or write what is free: a rank that did not hear that an operation was given up, or a
  // forked child.
  bool may_be_used_by_others() const { return is_retired || memory.is_given_up(); }

  SharedAllocation memory;
  std::map<std::size_t, std::size_t> gaps;   // bytes by offset
  std::map<std::size_t, std::size_t> taken;  // likewise
  std::size_t allocated = 0;
  bool is_retired = false;
};

SharedArena& SharedArena::instance() {
  static SharedArena* const instance = [] {
    ::pthread_atfork(lock_for_fork, unlock_in_parent, unlock_in_child);
    return new SharedArena();
  }();
  return *instance;
}

void* SharedArena::allocate(std::size_t bytes) noexcept {
  if (bytes == 0 || bytes > SIZE_MAX / 2) return nullptr;
  bytes = (bytes + page - 1) / page * page;
  try {
    std::vector<std::unique_ptr<File>> too_small;
    {
      const std::lock_guard lock(mutex_);
      if (std::byte* data = take_from_files(bytes)) return data;
      too_small = without_empty_files();
    }
    too_small.clear();
    return add_file(bytes);
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::byte* SharedArena::take_from_files(std::size_t bytes) {
  for (const auto& [start, file] : files_)
    if (std::byte* data = file->may_be_used_by_others() ? nullptr : file->take(bytes)) return data;
  return nullptr;
}

std::byte* SharedArena::add_file(std::size_t bytes) {
  const std::size_t file_bytes = std::max(bytes, std::clamp(usage().reserved, smallest_file, largest_file));
  auto file = std::make_unique<File>(file_bytes);
  if (is_scarce(file->memory.file())) return nullptr;
  std::byte* const data = file->take(bytes);
  const std::byte* const start = file->memory.data();
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::lock_guard lock(mutex_);
  if (address < lowest_) lowest_ = address;
  if (address + file_bytes > highest_) highest_ = address + file_bytes;
  files_.emplace(start, std::move(file));
  return data;
}

bool SharedArena::release(const void* data) noexcept {
  const auto* const start = static_cast<const std::byte*>(data);
  if (lies_outside(start)) return false;
  std::unique_ptr<File> emptied;  // given back after the lock
  const std::lock_guard lock(mutex_);
  const auto found = file_of(start);
  if (found == files_.end()) return false;
  File& file = *found->second;
  const auto range = file.taken.find(static_cast<std::size_t>(start - found->first));
  if (range == file.taken.end()) return false;
  file.give_back(range);
  if (file.taken.empty() && (keepers_ == 0 || file.may_be_used_by_others())) {
    emptied = std::move(found->second);
    files_.erase(found);
  }
  return true;
}

std::size_t SharedArena::bytes_at(const void* data) noexcept {
  const auto* const start = static_cast<const std::byte*>(data);
  if (lies_outside(start)) return 0;
  const std::lock_guard lock(mutex_);
  const auto found = file_of(start);
  if (found == files_.end()) return 0;
  const auto range = found->second->taken.find(static_cast<std::size_t>(start - found->first));
  return range == found->second->taken.end() ? 0 : range->second;
}

void SharedArena::keep_empty() noexcept {
  const std::lock_guard lock(mutex_);
  ++keepers_;
}

void SharedArena::return_empty() noexcept {
  std::vector<std::unique_ptr<File>> empty;
  const std::lock_guard lock(mutex_);
  if (--keepers_ == 0) empty = without_empty_files();
}

SharedArena::Usage SharedArena::usage() noexcept {
  const std::lock_guard lock(mutex_);
  Usage usage{0, 0, files_.size()};
  for (const auto& [start, file] : files_) {
    usage.allocated += file->allocated;
    usage.reserved += file->memory.bytes();
  }
  return usage;
}

std::vector<std::unique_ptr<SharedArena::File>> SharedArena::without_empty_files() {
  std::vector<std::unique_ptr<File>> empty;
  for (auto& [start, file] : files_)
    if (file->taken.empty()) empty.push_back(std::move(file));
  std::erase_if(files_, [](const auto& entry) { return entry.second == nullptr; });
  return empty;
}

SharedArena::Files::iterator SharedArena::file_of(const std::byte* data) {
  const auto next = files_.upper_bound(data);
  if (next == files_.begin()) return files_.end();
  const auto found = std::prev(next);
  return data < found->first + found->second->memory.bytes() ? found : files_.end();
}

bool SharedArena::lies_outside(const std::byte* data) const {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  return address < lowest_ || address >= highest_;
}

void SharedArena::retire_files() {
  for (const auto& [start, file] : files_) file->is_retired = true;
}

void SharedArena::lock_for_fork() { instance().mutex_.lock(); }

void SharedArena::unlock_in_parent() {
  instance().retire_files();
  instance().mutex_.unlock();
}

// The program made these tensors with functions that know nothing of sharing: in a child it expects them to be its own.
void SharedArena::unlock_in_child() {
  SharedArena& arena = instance();
  arena.retire_files();
  for (const auto& [start, file] : arena.files_)
    ::mmap(file->memory.data(), file->memory.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
           file->memory.file(), 0);
  arena.mutex_.unlock();
}

}  // namespace shim
