#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/frames/cuda_shape.hpp"

/// What one file of compiled code offers: an algorithm for one instruction set, as a table of
/// functions. Generated code is reached through tables and not through templates, so that callers
/// see no difference between an algorithm that is compiled at run time and one that was built in.
namespace hipress::kernels {

struct DecodeItem;

/// A parameter as generated code declares it; a Parameter without a constructor.
struct DeclaredParameter {
  const char* name;
  double value;  ///< the default; NaN: none, the user must give one
  double least, most;
  bool whole;
  int multiple = 1;  ///< whole numbers: what divides every value
  bool own = false;  ///< other than 0, it makes the algorithm an optimizer of its own
};

inline constexpr int kMaxParameters = 32;

/// An algorithm with its parameters bound: plain data that the algorithm's own code understands.
struct BoundAlgorithm {
  alignas(8) std::byte bytes[kMaxParameters * 8];
};

struct CompiledAlgorithm {
  const char* name;
  const DeclaredParameter* parameters;
  int parameter_count;
  bool error_feedback;
  int state_arrays;  ///< per slice, the residual among them
  bool deferrable;   ///< takes State::deferred
  void (*bind)(const double* values, BoundAlgorithm& bound);
  /// Codec::encoded_bytes().
  std::int64_t (*encoded_bytes)(const BoundAlgorithm& bound, std::int64_t elements);
  /// Encodes a slice of at least one element.
  void (*encode)(const BoundAlgorithm& bound, const EncodeItem& item);
  /// Decodes into a slice of at least one element and returns item.messages.size(). If a message is
  /// damaged or its length is not an encode's, writes nothing and returns the number of that
  /// message. Null for quantisers of slices: one loop (HostLoops::decode) decodes all of them, with
  /// the values that `levels` gives.
  std::size_t (*decode)(const BoundAlgorithm& bound, const DecodeItem& item);
  /// Codec::settle(); null if not deferrable.
  void (*settle)(const BoundAlgorithm& bound, const State& state, std::int64_t elements);

  // Of quantisers only:
  int planes_offset;                           ///< bytes of a message before its planes
  int (*planes)(const BoundAlgorithm& bound);  ///< bits per code
  /// The value of every code under a message; false, and nothing written, if it is damaged.
  bool (*levels)(const BoundAlgorithm& bound, const std::byte* message, std::int64_t elements,
                 float* levels);

  CudaShape cuda;
  /// Of sparsifiers: the state array in which waits what is not sent; -1: there is none.
  int waiting_array = -1;
};

}  // namespace hipress::kernels
