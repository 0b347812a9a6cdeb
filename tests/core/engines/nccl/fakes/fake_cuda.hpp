// A CUDA driver whose devices are pieces of this process's memory that the host cannot touch: a read or a write by the
// host's own instructions ends the process. What a program must not do ends it too, with a line that says what it was.
#pragma once

#include <cstddef>
#include <functional>

namespace fake {

[[noreturn]] void wrong_use(const char* function, const char* what);

// Of `bytes` of device memory from `address` on: where the fakes themselves may reach them. Ends the process for
// anything else.
std::byte* memory_at(const char* function, const void* address, std::size_t bytes, int device);

// The device of the calling thread's current context; ends the process where it has none.
int current_device(const char* function);

// Has the stream, which must be of `device`, do `work` after what it was given before. Returns false, and drops it,
// where a graph is captured.
bool put_on_stream(const char* function, void* stream, int device, std::function<void()> work);

// Returns an error, and ends the graph, where the calling thread must not do what may wait while one is captured. NCCL
// takes care of its own thread.
int check_capture(bool is_own_fine = false);

bool has_graphs();  // that were captured, and not destroyed

}  // namespace fake
