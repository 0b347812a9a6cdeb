// What the engine has to know of the interpreter it is loaded into.
#pragma once

#include <nanobind/nanobind.h>

namespace shim::bindings {

// Throws ImportError in a subinterpreter: what the engine keeps of Python's is kept once for the process.
void refuse_subinterpreters();

// Sets the function that is called before os.execv and its like put another program into this process, if there is
// such a program.
void set_before_exec(nanobind::callable function);

}  // namespace shim::bindings
