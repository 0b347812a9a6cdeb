// What may make calls of the program while one of its threads waits.
#pragma once

namespace shim::bindings {

// Whether the calling thread has the GIL.
bool has_gil();

// Whether no thread but the calling one may make a call, as far as Python knows of threads. Needs the GIL.
bool is_only_thread();

// Whether the program handles a signal with a function of its own, which Python calls during a wait and which may make
// calls. Needs the GIL.
bool handles_signals();

// Says of the calling thread whether it makes no calls. Needs the GIL. One that has said so takes it back before it
// ends.
void set_makes_no_calls(bool makes_none);

// The same as set_makes_no_calls for the one thread that asks where the program is, which has not the GIL yet.
void set_place_asking(bool is_asking);

}  // namespace shim::bindings
