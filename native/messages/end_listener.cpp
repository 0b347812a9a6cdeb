#include "messages/end_listener.hpp"

#include <atomic>

namespace shim {
namespace {
std::atomic<void (*)()> end_listener{nullptr};
}

void set_end_listener(void (*listener)()) { end_listener.store(listener); }

void tell_end_listener() {
  if (void (*listener)() = end_listener.load()) listener();
}

}  // namespace shim
