#include "kernels/host/isa.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace hipress::kernels {

namespace {

#ifdef __x86_64__
/// Replaces __builtin_cpu_supports("f16c"), which clang 14 lacks.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

std::vector<Isa> find_isas() {
  std::vector<Isa> found = {Isa::kScalar, Isa::kPortable};
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && has_f16c()) {
    found.push_back(Isa::kAvx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      found.push_back(Isa::kAvx512);
    }
  }
#endif
  return found;
}

}  // namespace

const std::vector<Isa>& available_isas() {
  static const std::vector<Isa> isas = find_isas();
  return isas;
}

Isa best_isa() { return available_isas().back(); }

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

}  // namespace hipress::kernels
