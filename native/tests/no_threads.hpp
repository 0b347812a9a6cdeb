// A system that gives no more threads.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <stdexcept>

namespace shim::tests {

// While it lives, threads are to have stacks larger than any address space.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, std::size_t{1} << 50) != 0 ||
        pthread_setattr_default_np(&attributes) != 0)
      throw std::runtime_error("threads cannot be kept from beginning");
    pthread_attr_destroy(&attributes);
  }
  ~NoThreads() { pthread_setattr_default_np(&before_); }

 private:
  pthread_attr_t before_;
};

}  // namespace shim::tests
