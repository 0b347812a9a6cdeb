// Facts about this process that the engine depends on.
#pragma once

#include <cstdint>
#include <string>

#include "platform/segment.hpp"

namespace shim {

// Changes in every forked child: what was made under another generation belongs to the parent and must not be touched.
std::uint64_t process_generation();

// The inode of this process's pid namespace, in which its number means something; 0 where that cannot be told.
std::uint64_t pid_namespace();
// Whether the process with this number, of this process's namespace, is "running", "sleeping" or "stopped", as by
// SIGSTOP or a debugger; empty where it is nothing of these.
std::string state_of(int process);
// How the process behind a pidfd that has ended did: "was killed by SIGKILL", "exited with status 3"; empty where the
// kernel does not tell. `process` is its number, 0 where it has none here.
std::string how_it_ended(int pidfd, int process);
// Throws Failure(engine) where the system gives none.
Descriptor pidfd_of_this_process();
// Of the process with this number, of this process's namespace; empty where it has ended, or the system gives none.
Descriptor pidfd_of(int process);
std::uint64_t random_number();
// Copies from another process's memory to this one's, or the other way round. False where not all of it can be; errno
// says why.
bool read_memory(int process, std::uint64_t from, void* to, std::size_t bytes);
// Whether the kernel reads the first and the last of so many bytes there. It does not read all that a processor can:
// not what a device's driver has mapped, and no secret memory.
bool can_read_ends(int process, std::uint64_t from, std::size_t bytes);
// The number of the process behind a pidfd in this process's namespace, 0 where it has none.
int number_of(int pidfd);

}  // namespace shim
