// Who is told that a call has ended.
#pragma once

namespace shim {

// `listener` is called whenever a task that was started has ended, by the thread that ended it; it must neither block
// nor throw.
void set_end_listener(void (*listener)());
void tell_end_listener();

}  // namespace shim
