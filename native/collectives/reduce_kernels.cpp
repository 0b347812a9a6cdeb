#include "collectives/reduce_kernels.hpp"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace shim {
namespace {

std::vector<KernelSet> found() {
  std::vector<KernelSet> sets;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  // Every processor with these has F16C, about which older compilers cannot ask.
  const bool has_v3 = has_v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  if (has_v4 && __builtin_cpu_supports("avx512bf16")) sets.push_back({"x86-64-v4-bf16", x86_64_v4_bf16::kernel_for});
  if (has_v4) sets.push_back({"x86-64-v4", x86_64_v4::kernel_for});
  if (has_v3) sets.push_back({"x86-64-v3", x86_64_v3::kernel_for});
  if (has_v2) sets.push_back({"x86-64-v2", x86_64_v2::kernel_for});
#elif defined(__aarch64__)
  constexpr unsigned long has_bf16 = 1ul << 14;  // HWCAP2_BF16, which older headers lack
  if ((getauxval(AT_HWCAP2) & has_bf16) != 0) sets.push_back({"aarch64-bf16", aarch64_bf16::kernel_for});
#endif
  sets.push_back({"portable", portable::kernel_for});
  return sets;
}

}  // namespace

const std::vector<KernelSet>& usable_kernels() {
  static const std::vector<KernelSet> sets = found();
  return sets;
}

Kernel fastest_kernel(Dtype dtype, ReduceOp op) {
  static const KernelSet& fastest = usable_kernels().front();
  return fastest.kernel_for(dtype, op);
}

}  // namespace shim
