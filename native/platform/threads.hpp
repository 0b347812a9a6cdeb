// How this engine's own threads begin.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "platform/failure.hpp"

namespace shim {

// A thread that runs function() with every signal blocked: these are for the threads of the program. Debuggers and
// `top` show its name, of 15 characters at most. Throws Failure(engine) where the system gives no thread.
template <class Function>
std::thread begin_thread(const char* name, Function&& function) {
  struct SignalsBlocked {
    SignalsBlocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  } const blocked;
  try {
    std::thread thread(std::forward<Function>(function));
    pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error& error) {
    throw Failure(FailureKind::engine, std::string("cannot begin a thread: ") + error.code().message());
  }
}

}  // namespace shim
