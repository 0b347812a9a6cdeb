// What the fake driver has for kernels: it carries out the one that fake_nvrtc.cpp has compiled for the host.
#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "driver.hpp"
#include "fake_cuda.hpp"

using namespace fake;

namespace {

struct Areas {
  const void* of[64];
};
struct Kernel {
  void (*function)(unsigned, unsigned, void*, Areas, unsigned long long, int, double);
  std::size_t element_bytes;
};

}  // namespace

extern "C" {

int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  std::memset(uuid, 0, 16);
  uuid[15] = static_cast<unsigned char>(device);
  return success;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  if (attribute != 75 && attribute != 76) return invalid_value;
  *value = attribute == 75 ? 9 : 0;
  return success;
}

// The code is the name of a library.
int cuModuleLoadData(void** module, const char* code) {
  current_device("cuModuleLoadData");
  if (const int error = check_capture()) return error;
  *module = dlopen(code, RTLD_NOW | RTLD_LOCAL);
  return *module == nullptr ? invalid_value : success;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  auto* const bytes = reinterpret_cast<std::size_t (*)()>(dlsym(module, "element_bytes"));
  auto* const found = reinterpret_cast<decltype(Kernel::function)>(dlsym(module, "on_grid"));
  if (dlsym(module, name) == nullptr || found == nullptr || bytes == nullptr) return invalid_value;
  *function = new Kernel{found, bytes()};
  return success;
}

int cuLaunchKernel(const Kernel* kernel, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                   unsigned, void* stream, void** arguments, void**) {
  if (blocks == 0 || threads == 0 || threads > 1024) return invalid_value;
  const int device = current_device("cuLaunchKernel");
  const auto count = *static_cast<unsigned long long*>(arguments[2]);
  const int ranks = *static_cast<int*>(arguments[3]);
  const double factor = *static_cast<double*>(arguments[4]);
  const std::size_t bytes = count * kernel->element_bytes;
  void* const result = memory_at("cuLaunchKernel", *static_cast<void**>(arguments[0]), bytes, device);
  Areas areas{};
  for (int rank = 0; rank < ranks; ++rank)
    areas.of[rank] = memory_at("cuLaunchKernel", static_cast<Areas*>(arguments[1])->of[rank], bytes, device);
  put_on_stream("cuLaunchKernel", stream, device,
                [=, function = kernel->function] { function(blocks, threads, result, areas, count, ranks, factor); });
  return success;
}

}  // extern "C"
