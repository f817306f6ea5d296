#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/codec/slice.hpp"
#include "kernels/frames/draws.hpp"
#include "kernels/frames/typed_values.hpp"

/// Interface between the launcher of a quantiser's kernels (cuda/quantizer.cu) and the kernels
/// (cuda/quantizer.cuh). Kernels are passed as handles, so that one launcher serves built-in
/// kernels and those compiled at run time.
namespace hipress::kernels {

/// Treatment of the residual by an encode; see Feedback in host/quantizer_body.hpp.
enum class CudaFeedback { kNone, kAtOnce, kDeferred };

struct EncodeSlice {
  const void* values;
  std::int64_t elements;
  ValueType type;
  ValueRule rule;
  float* residual;     ///< null without error feedback
  Deferred* deferred;  ///< null: the residual is updated at once
  std::byte* message;
  std::uint32_t* planes;
  DrawStream draws;
  std::int64_t* message_bytes;
  std::int64_t first_block;
  std::int64_t first_tile;  ///< index of its first tile's TileResult
  std::int64_t number;      ///< index of its SliceResult

#ifdef __CUDACC__
  template <ValueType kType>
  __device__ float value(std::int64_t element) const {
    return rule(load_value(values, kType, element), residual != nullptr ? residual[element] : 0.0f);
  }
#endif
};

inline constexpr int kMessagesPerLaunch = 8;

/// One slice, decoded from at most kMessagesPerLaunch messages. More messages take several
/// DecodeSlices in sequence: only the first divides by `own_divisor`, only the last by
/// `sum_divisor`, and the sums between them are fp32.
struct DecodeSlice {
  const std::byte* messages[kMessagesPerLaunch];  ///< null if its length is wrong
  int count;
  DecodeMode mode;
  ValueType read_type, type;
  float own_divisor, sum_divisor;
  const void* read;  ///< input x with DecodeMode::kAdd; numbers of `read_type`
  void* values;      ///< output; numbers of `type`
  std::int64_t elements;
  std::int64_t first_block;
};

inline constexpr int kMaxCudaPasses = 8;
inline constexpr int kValueTypes = 3;

struct CudaPassKernels {
  std::size_t tile_result_bytes = 0;
  const void* measure[kValueTypes][3] = {};  ///< by value type and CudaFeedback
  const void* conclude = nullptr;
};

/// Kernels of one quantiser, as functions or cudaKernel_t; cudaLaunchKernel takes both.
struct CudaQuantizerKernels {
  int pass_count = 0;
  int codes_after = 0;
  std::size_t slice_result_bytes = 0;
  CudaPassKernels passes[kMaxCudaPasses];
  const void* encode[kValueTypes] = {};
  const void* put_back = nullptr;
  const void* settle = nullptr;  ///< null if the algorithm never defers
  const void* decode = nullptr;
};

}  // namespace hipress::kernels
