// Where in the Python program something happens: "/home/me/train.py:12 in step".
#pragma once

#include <string>

namespace shim::bindings {

// The innermost line of this thread's program that is not of this package itself; empty where there is none. Needs the
// GIL, and leaves an error that is set as it is.
std::string source_line();

// The same of the thread that called this_thread_is_the_program last, asked for by any thread that has not the GIL.
std::string source_line_of_program();
void this_thread_is_the_program();

}  // namespace shim::bindings
