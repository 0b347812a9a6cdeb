// Taking Python's lock while the interpreter may be ending.
#pragma once

#include <unistd.h>

namespace shim::bindings {

// At the end of the interpreter, Python before 3.14 ends the other threads that want its lock by unwinding them, which
// aborts the process at the first destructor it comes through. So such a thread stays here until the process has ended,
// as it does in Python 3.14. Inlined into a destructor, the compiler would leave out what holds it.
template <class Take>
[[gnu::noinline]] void take_or_stay(const Take& take) {
  struct Stay {
    bool may_go = false;
    ~Stay() {
      while (!may_go) ::pause();
    }
  } stay;
  take();
  stay.may_go = true;
}

}  // namespace shim::bindings
