#pragma once

#include "kernels/frames/compiled_algorithm.hpp"

namespace hipress::kernels {

/// Base of the functions of a CompiledAlgorithm: BoundAlgorithm::bytes hold an Algorithm. `Lanes`
/// are an instruction set's vector types: each instruction set thus gets functions of its own.
template <class Algorithm, class... Lanes>
struct BoundFunctions {
  static_assert(sizeof(Algorithm) <= sizeof(BoundAlgorithm) &&
                alignof(Algorithm) <= alignof(BoundAlgorithm));

  static const Algorithm& algorithm(const BoundAlgorithm& bound) {
    return *reinterpret_cast<const Algorithm*>(bound.bytes);
  }
  static void bind(const double* values, BoundAlgorithm& bound) {
    const Algorithm made(values);
    __builtin_memcpy(bound.bytes, &made, sizeof made);
  }
};

}  // namespace hipress::kernels
