#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/frames/cuda_shape.hpp"

/// Interface of a file of compiled code: an algorithm for one instruction set, as a table of
/// functions. With tables instead of templates, callers treat algorithms that are compiled at run
/// time like built-in ones.
namespace hipress::kernels {

struct DecodeItem;

/// A parameter as generated code declares it: a Parameter without a constructor.
struct DeclaredParameter {
  const char* name;
  double value;  ///< default; NaN if the user must give one
  double least, most;
  bool whole;
  int multiple = 1;  ///< for whole numbers: every value is a multiple of it
  bool own = false;  ///< a value other than 0 sets CodecTraits::own_optimizer
};

inline constexpr int kMaxParameters = 32;

/// An algorithm with its parameters bound: plain data, known only to the algorithm's own code.
struct BoundAlgorithm {
  alignas(8) std::byte bytes[kMaxParameters * 8];
};

struct CompiledAlgorithm {
  const char* name;
  const DeclaredParameter* parameters;
  int parameter_count;
  bool error_feedback;
  int state_arrays;  ///< per slice, including the residual
  bool deferrable;   ///< supports State::deferred
  void (*bind)(const double* values, BoundAlgorithm& bound);
  /// Codec::encoded_bytes().
  std::int64_t (*encoded_bytes)(const BoundAlgorithm& bound, std::int64_t elements);
  /// Encodes a slice of at least one element.
  void (*encode)(const BoundAlgorithm& bound, const EncodeItem& item);
  /// Decodes into a slice of at least one element and returns item.messages.size(). If a message is
  /// damaged or has the wrong length, writes nothing and returns that message's index. Null for
  /// quantisers other than block quantisers: they share one loop, HostLoops::decode, which takes
  /// the values from `levels`.
  std::size_t (*decode)(const BoundAlgorithm& bound, const DecodeItem& item);
  /// Codec::settle(); null if not deferrable.
  void (*settle)(const BoundAlgorithm& bound, const State& state, std::int64_t elements);

  // Quantisers only, except block quantisers:
  int planes_offset;                           ///< bytes of a message before its planes
  int (*planes)(const BoundAlgorithm& bound);  ///< bits per code
  /// Computes the value of every code of a message. Returns false, and writes nothing, if the
  /// message is damaged.
  bool (*levels)(const BoundAlgorithm& bound, const std::byte* message, std::int64_t elements,
                 float* levels);

  CudaShape cuda;
  /// Sparsifiers only: index of the state array that holds unsent values, or -1.
  int waiting_array = -1;
};

}  // namespace hipress::kernels
