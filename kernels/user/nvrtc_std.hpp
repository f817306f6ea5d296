#ifndef HIPRESS_KERNELS_NVRTC_STD_HPP
#define HIPRESS_KERNELS_NVRTC_STD_HPP

/// Minimal standard library for device code, because NVRTC has none. nvrtc.cpp passes this file to
/// NVRTC under the names of the standard headers, so no toolkit is needed.
namespace std {

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long;
using size_t = decltype(sizeof 0);
using uintptr_t = unsigned long;
static_assert(sizeof(int64_t) == 8);
enum class byte : unsigned char {};

template <class T>
inline constexpr bool is_floating_point_v = false;
template <>
inline constexpr bool is_floating_point_v<float> = true;
template <>
inline constexpr bool is_floating_point_v<double> = true;
template <class T>
inline constexpr bool is_arithmetic_v = is_floating_point_v<T>;
template <>
inline constexpr bool is_arithmetic_v<bool> = true;
template <>
inline constexpr bool is_arithmetic_v<int32_t> = true;
template <>
inline constexpr bool is_arithmetic_v<uint32_t> = true;
template <>
inline constexpr bool is_arithmetic_v<int64_t> = true;
template <>
inline constexpr bool is_arithmetic_v<uint64_t> = true;

template <class T, T kValue>
struct integral_constant {
  static constexpr T value = kValue;
};

template <class T>
T&& declval() noexcept;

}  // namespace std

// g++'s names, which nvcc knows, too, but NVRTC does not.
#define __builtin_ceil ::ceil
#define __builtin_fabs ::fabs
#define __builtin_floor ::floor
#define __builtin_floorf ::floorf
#define __builtin_sqrt ::sqrt
#define __builtin_sqrtf ::sqrtf

#define INT64_MAX 0x7fffffffffffffffl
#define INT64_MIN (-INT64_MAX - 1)

#endif
