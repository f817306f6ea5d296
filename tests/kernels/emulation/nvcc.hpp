#pragma once

// Defines nvcc's built-in names. The emulation's device code is compiled with this header in front.
// The standard library comes first: it must not take the compiler for nvcc.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/kernels/emulation/cuda_runtime.h"

#ifdef __FAST_MATH__
#error "the emulation gives the GPU's bits in IEEE arithmetic only"
#endif

#define __CUDACC__ 1
/// 7.5, the lowest compute capability that the kernels are built for, times 100.
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 750
#endif
/// Makes handle_of() in kernels/cuda/batch.hpp keep the kernel's type.
#define HIPRESS_EMULATES_CUDA 1

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// See shared_memory(). Clang supports sections for variables in templates, too.
#ifdef __clang__
#define __shared__ static __attribute__((section("cuda_shared"), used))
#else
#define __shared__ static __thread
#endif
#ifndef __restrict__
#define __restrict__ __restrict
#endif
#define __align__(n) __attribute__((aligned(n)))

// ---- rendezvous ----

#define EMULATION_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace hipress::kernels::emulation {

inline const char* nothing(const Present&) { return nullptr; }

/// Gives each thread the value of the lane that it reads from.
inline const char* shuffle(const Present& present) {
  for (Thread* thread : present) {
    if (thread == nullptr) continue;
    const Thread* const source = present[thread->source];
    if (source == nullptr) return "reads from a lane that the mask leaves out";
    thread->got = source->given;
  }
  return nullptr;
}

/// Gives all threads a mask of the lanes whose value is not 0.
inline const char* vote(const Present& present) {
  std::uint64_t lanes = 0;
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (present[i] != nullptr && present[i]->given != 0) lanes |= 1ull << i;
  }
  for (Thread* thread : present) {
    if (thread != nullptr) thread->got = lanes;
  }
  return nullptr;
}

/// Gives all threads the number of threads whose value is 1.
inline const char* count(const Present& present) {
  std::uint64_t found = 0;
  for (const Thread* thread : present) found += thread->given;
  for (Thread* thread : present) thread->got = found;
  return nullptr;
}

/// Gives each thread a mask of the lanes with the same value.
inline const char* match(const Present& present) {
  for (Thread* thread : present) {
    if (thread == nullptr) continue;
    thread->got = 0;
    for (std::size_t i = 0; i < present.size(); ++i) {
      if (present[i] != nullptr && present[i]->given == thread->given) thread->got |= 1ull << i;
    }
  }
  return nullptr;
}

template <class T>
T shuffled(const Place& place, unsigned mask, T value, unsigned source) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) >= 4, "CUDA has no shuffle of this type");
  std::uint64_t given = 0;
  std::memcpy(&given, &value, sizeof value);
  const std::uint64_t got = Grid::instance().meet_warp(place, mask, given, source, shuffle);
  std::memcpy(&value, &got, sizeof value);
  return value;
}

}  // namespace hipress::kernels::emulation

inline void __syncthreads(EMULATION_PLACE) {
  namespace emulation = hipress::kernels::emulation;
  emulation::Grid::instance().meet_block({"__syncthreads", file, line}, 0, emulation::nothing);
}
inline int __syncthreads_count(int predicate, EMULATION_PLACE) {
  namespace emulation = hipress::kernels::emulation;
  return static_cast<int>(emulation::Grid::instance().meet_block(
      {"__syncthreads_count", file, line}, predicate != 0, emulation::count));
}
inline int __syncthreads_or(int predicate, EMULATION_PLACE) {
  namespace emulation = hipress::kernels::emulation;
  return emulation::Grid::instance().meet_block({"__syncthreads_or", file, line}, predicate != 0,
                                                emulation::count) != 0;
}
inline int __syncthreads_and(int predicate, EMULATION_PLACE) {
  namespace emulation = hipress::kernels::emulation;
  return emulation::Grid::instance().meet_block({"__syncthreads_and", file, line}, predicate == 0,
                                                emulation::count) == 0;
}

inline void __syncwarp(unsigned mask = 0xffffffffu, EMULATION_PLACE) {
  namespace emulation = hipress::kernels::emulation;
  emulation::Grid::instance().meet_warp({"__syncwarp", file, line}, mask, 0, 0, emulation::nothing);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, EMULATION_PLACE) {
  namespace emulation = hipress::kernels::emulation;
  return static_cast<unsigned>(emulation::Grid::instance().meet_warp(
      {"__ballot_sync", file, line}, mask, predicate != 0, 0, emulation::vote));
}
inline int __any_sync(unsigned mask, int predicate, EMULATION_PLACE) {
  namespace emulation = hipress::kernels::emulation;
  return emulation::Grid::instance().meet_warp({"__any_sync", file, line}, mask, predicate != 0, 0,
                                               emulation::vote) != 0;
}
inline int __all_sync(unsigned mask, int predicate, EMULATION_PLACE) {
  namespace emulation = hipress::kernels::emulation;
  return emulation::Grid::instance().meet_warp({"__all_sync", file, line}, mask, predicate == 0, 0,
                                               emulation::vote) == 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, EMULATION_PLACE) {
  namespace emulation = hipress::kernels::emulation;
  std::uint64_t given = 0;
  std::memcpy(&given, &value, sizeof value);
  return static_cast<unsigned>(emulation::Grid::instance().meet_warp(
      {"__match_any_sync", file, line}, mask, given, 0, emulation::match));
}

// Groups of `width` lanes (a power of two) shuffle separately. A lane that would read from outside
// its group gets its own value.
template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32, EMULATION_PLACE) {
  namespace emulation = hipress::kernels::emulation;
  const int lane = static_cast<int>(emulation::Grid::instance().lane());
  const int source = (lane & ~(width - 1)) | (from & (width - 1));
  return emulation::shuffled({"__shfl_sync", file, line}, mask, value,
                             static_cast<unsigned>(source));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, EMULATION_PLACE) {
  namespace emulation = hipress::kernels::emulation;
  const int lane = static_cast<int>(emulation::Grid::instance().lane());
  const int source = lane - static_cast<int>(by);
  const bool inside = source >= (lane & ~(width - 1));
  return emulation::shuffled({"__shfl_up_sync", file, line}, mask, value,
                             static_cast<unsigned>(inside ? source : lane));
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, EMULATION_PLACE) {
  namespace emulation = hipress::kernels::emulation;
  const int lane = static_cast<int>(emulation::Grid::instance().lane());
  const int source = lane + static_cast<int>(by);
  const bool inside = source < (lane & ~(width - 1)) + width;
  return emulation::shuffled({"__shfl_down_sync", file, line}, mask, value,
                             static_cast<unsigned>(inside ? source : lane));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32, EMULATION_PLACE) {
  namespace emulation = hipress::kernels::emulation;
  const int lane = static_cast<int>(emulation::Grid::instance().lane());
  const int source = lane ^ with;
  const bool inside = source < (lane & ~(width - 1)) + width;
  return emulation::shuffled({"__shfl_xor_sync", file, line}, mask, value,
                             static_cast<unsigned>(inside ? source : lane));
}

// ---- atomics: plain operations, because fibers are not interrupted ----

template <class T, class V, class Change>
T emulation_atomic(T* at, V value, const Change& change) {
  static_assert(std::is_integral_v<T>, "sums of floats would depend on the order");
  const T before = *at;
  *at = change(before, static_cast<T>(value));
  return before;
}
template <class T, class V>
T atomicAdd(T* at, V value) {
  using U = std::make_unsigned_t<T>;
  return emulation_atomic(
      at, value, [](T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); });
}
template <class T, class V>
T atomicSub(T* at, V value) {
  using U = std::make_unsigned_t<T>;
  return emulation_atomic(
      at, value, [](T a, T b) { return static_cast<T>(static_cast<U>(a) - static_cast<U>(b)); });
}
template <class T, class V>
T atomicMin(T* at, V value) {
  return emulation_atomic(at, value, [](T a, T b) { return b < a ? b : a; });
}
template <class T, class V>
T atomicMax(T* at, V value) {
  return emulation_atomic(at, value, [](T a, T b) { return a < b ? b : a; });
}
template <class T, class V>
T atomicAnd(T* at, V value) {
  return emulation_atomic(at, value, [](T a, T b) { return a & b; });
}
template <class T, class V>
T atomicOr(T* at, V value) {
  return emulation_atomic(at, value, [](T a, T b) { return a | b; });
}
template <class T, class V>
T atomicXor(T* at, V value) {
  return emulation_atomic(at, value, [](T a, T b) { return a ^ b; });
}
template <class T, class V>
T atomicExch(T* at, V value) {
  return emulation_atomic(at, value, [](T, T b) { return b; });
}
template <class T, class V, class W>
T atomicCAS(T* at, V expected, W value) {
  return emulation_atomic(at, value,
                          [&](T a, T b) { return a == static_cast<T>(expected) ? b : a; });
}
inline void __threadfence() {}
inline void __threadfence_block() {}

// ---- functions of a single thread ----

inline int __popc(unsigned value) { return std::popcount(value); }
inline int __popcll(unsigned long long value) { return std::popcount(value); }
inline int __clz(int value) { return std::countl_zero(static_cast<unsigned>(value)); }
inline int __clzll(long long value) {
  return std::countl_zero(static_cast<unsigned long long>(value));
}
inline int __ffs(int value) { return __builtin_ffs(value); }
inline int __ffsll(long long value) { return __builtin_ffsll(value); }
inline unsigned __brev(unsigned value) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (value >> bit & 1u) << (31 - bit);
  return reversed;
}

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }

template <class T>
T __ldg(const T* from) {
  return *from;
}
template <class T>
T __ldcs(const T* from) {
  return *from;
}
template <class T>
void __stcs(T* to, T value) {
  *to = value;
}

template <class T>
T min(T a, T b) {
  static_assert(std::is_integral_v<T>, "CUDA's min of floats leaves out a NaN");
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  static_assert(std::is_integral_v<T>, "CUDA's max of floats leaves out a NaN");
  return a < b ? b : a;
}

struct __align__(8) uint2 {
  unsigned x, y;
};
struct __align__(16) uint4 {
  unsigned x, y, z, w;
};
struct __align__(8) float2 {
  float x, y;
};
struct __align__(16) float4 {
  float x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
