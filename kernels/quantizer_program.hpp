#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec.hpp"

/// What one file of compiled code offers: a quantiser for one instruction set, as a table of
/// functions. Tables rather than templates join generated code to the rest, so that an algorithm
/// compiled at run time is the same to everybody as one that was built in.
namespace hipress::kernels {

/// A parameter as generated code declares it; a Parameter without a constructor.
struct DeclaredParameter {
  const char* name;
  double value;  ///< the default; NaN: none, the user must give one
  double least, most;
  bool whole;
};

/// An algorithm with its parameters bound: plain data that the algorithm's own code understands.
struct BoundQuantizer {
  alignas(8) std::byte bytes[64];
};

struct QuantizerProgram {
  const char* name;
  const DeclaredParameter* parameters;
  int parameter_count;
  bool error_feedback;
  bool deferrable;    ///< takes State::deferred
  int planes_offset;  ///< bytes of a message before its planes
  void (*bind)(const double* values, BoundQuantizer& bound);
  int (*planes)(const BoundQuantizer& bound);
  void (*encode)(const BoundQuantizer& bound, const EncodeItem& item);
  /// The value of every code under a message; false, and nothing written, if it is damaged.
  bool (*levels)(const BoundQuantizer& bound, const std::byte* message, std::int64_t elements,
                 float* levels);
  void (*settle)(const BoundQuantizer& bound, const State& state, std::int64_t elements);
};

}  // namespace hipress::kernels
