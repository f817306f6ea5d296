#pragma once

#include "kernels/frames/compiled_algorithm.hpp"

namespace hipress::kernels {

/// Base of the functions of every CompiledAlgorithm: the bytes of a bound algorithm are an
/// Algorithm. `Lanes` are the instruction set's, so that each instruction set has its own
/// functions.
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
