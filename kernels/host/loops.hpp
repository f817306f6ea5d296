#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/codec.hpp"
#include "kernels/host/isa.hpp"

/// The loops on CPUs, one copy per instruction set (isa_*.cpp), and the choice among the copies.
namespace hipress::kernels {

/// One message to decode: its planes, and the value of each code.
struct PlaneSource {
  const std::uint32_t* planes = nullptr;
  const float* levels = nullptr;  ///< must have at least 16 readable floats
};

/// Tags, one per Isa.
struct ScalarIsa {};
struct PortableIsa {};
struct Avx2Isa {};
struct Avx512Isa {};

/// Loops for one instruction set. They require checked lengths and headers, and neither throw nor
/// allocate. Arrays are passed as pointer and count: functions of a standard-library type would be
/// compiled here for one instruction set, and the linker could use them for a different one.
template <class IsaTag>
struct HostLoops {
  /// Decodes sources with codes of `planes` bits into an item.
  static void decode(int planes, const PlaneSource* sources, std::size_t count,
                     const DecodeItem& item);
  template <class Format>
  static void encode_cast(const EncodeItem& item);
  template <class Format>
  static void decode_cast(const std::byte* const* messages, std::size_t count,
                          const DecodeItem& item);
  static void merge(const float* const* others, std::size_t count, float* values,
                    std::int64_t elements, float own_divisor, float sum_divisor);
};

/// Calls `function(HostLoops<tag>())` for the instruction set, one of available_isas().
template <class Function>
void with_loops(Isa isa, const Function& function) {
  switch (isa) {
    case Isa::kScalar:
      return function(HostLoops<ScalarIsa>());
    case Isa::kPortable:
      return function(HostLoops<PortableIsa>());
#ifdef __x86_64__
    case Isa::kAvx2:
      return function(HostLoops<Avx2Isa>());
    case Isa::kAvx512:
      return function(HostLoops<Avx512Isa>());
#else
    default:
      return;
#endif
  }
}

}  // namespace hipress::kernels
