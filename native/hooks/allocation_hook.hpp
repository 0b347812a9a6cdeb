// Sends large allocations of a thread that asks for it to shared memory.
#pragma once

#include <cstddef>
#include <string>

namespace shim {

// From now on, what this thread allocates through one of the hooks below, of at least so many bytes, goes to the
// SharedArena; nothing with 0. What that cannot give is ordinary memory, and all may be freed by any thread at any
// time. Returns what held before, which the caller restores in the end.
std::size_t share_allocations(std::size_t at_least);

// Hooks posix_memalign and free, as the loaded libraries of this file name call them. What these libraries allocate by
// the one they have to free by the other. Returns false when they do not import them.
bool hook_aligned_allocations(const std::string& library);

// The functions of an allocator with the states of malloc. To be freed by shared_or_ordinary_free alone.
void* shared_or_ordinary_malloc(std::size_t bytes);
void* shared_or_ordinary_calloc(std::size_t count, std::size_t bytes);
void* shared_or_ordinary_realloc(void* data, std::size_t bytes);
void shared_or_ordinary_free(void* data);

}  // namespace shim
