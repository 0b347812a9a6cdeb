#include "hooks/allocation_hook.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "hooks/library_hook.hpp"
#include "lending/shared_arena.hpp"

namespace shim {
namespace {

thread_local std::size_t least_to_share = 0;  // bytes; 0: nothing

void* shared(std::size_t bytes) {
  if (least_to_share == 0 || bytes < least_to_share) return nullptr;
  return SharedArena::instance().allocate(bytes);
}

int shared_or_ordinary_posix_memalign(void** data, std::size_t alignment, std::size_t bytes) {
  void* const found = alignment <= SharedArena::page ? shared(bytes) : nullptr;
  if (found == nullptr) return ::posix_memalign(data, alignment, bytes);
  *data = found;
  return 0;
}

}  // namespace

std::size_t share_allocations(std::size_t at_least) {
  const std::size_t before = std::exchange(least_to_share, at_least);
  SharedArena& arena = SharedArena::instance();
  if (before == 0 && at_least != 0) arena.keep_empty();
  if (before != 0 && at_least == 0) arena.return_empty();
  return before;
}

bool hook_aligned_allocations(const std::string& library) {
  SharedArena::instance();  // not made by whoever frees first
  // What the one has given only the other may get.
  return replace_imports(library, {{"free", reinterpret_cast<void*>(&shared_or_ordinary_free)},
                                   {"posix_memalign", reinterpret_cast<void*>(&shared_or_ordinary_posix_memalign)}});
}

void* shared_or_ordinary_malloc(std::size_t bytes) {
  void* const data = shared(bytes);
  return data != nullptr ? data : std::malloc(bytes);
}

void* shared_or_ordinary_calloc(std::size_t count, std::size_t bytes) {
  const bool overflows = bytes != 0 && count > SIZE_MAX / bytes;
  void* const data = overflows ? nullptr : shared(count * bytes);
  return data != nullptr ? std::memset(data, 0, count * bytes) : std::calloc(count, bytes);
}

void* shared_or_ordinary_realloc(void* data, std::size_t bytes) {
  const std::size_t before = SharedArena::instance().bytes_at(data);
  if (before == 0) return std::realloc(data, bytes);
  void* const moved = shared_or_ordinary_malloc(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, data, std::min(before, bytes));
  shared_or_ordinary_free(data);
  return moved;
}

void shared_or_ordinary_free(void* data) {
  if (!SharedArena::instance().release(data)) std::free(data);
}

}  // namespace shim
