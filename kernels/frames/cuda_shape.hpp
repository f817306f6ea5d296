#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/frames/quantizer.hpp"

/// Intermediate results of a quantiser's kernels in temporary memory. Host compilers must know
/// their sizes, too: the launcher of kernels compiled at run time cannot query them.
namespace hipress::kernels {

/// Result of a measuring pass for one tile.
template <class Partial>
struct TileResult {
  Partial sums;
  std::uint32_t flags;  ///< non_finite_flag of the inputs
};

/// Result of the measuring passes so far for a slice.
template <class Algorithm>
struct SliceResult {
  typename Algorithm::Scalars scalars;
  bool non_finite;
};

template <class Algorithm, int kPass>
using MeasureOf = decltype(std::declval<const Algorithm&>().measure(
    Pass<kPass>(), std::declval<const typename Algorithm::Scalars&>(),
    std::declval<const DrawStream&>()));
template <class Algorithm, int kPass, class F>
using PartialOf = typename MeasureOf<Algorithm, kPass>::template Partial<F>;

/// The frame of an algorithm's kernels.
enum class CudaKind { kNone, kQuantizer, kSparsifier, kBlocks };

/// Launch parameters of an algorithm's kernels.
struct CudaShape {
  CudaKind kind = CudaKind::kNone;  ///< kNone: CPUs only
  // Quantisers only:
  int pass_count = 0;
  int codes_after = 0;
  std::size_t slice_result_bytes = 0;
  std::size_t tile_result_bytes = 0;  ///< largest sizeof(TileResult) among the passes
};

template <class Algorithm, int kPass = 0>
constexpr std::size_t tile_result_bytes() {
  if constexpr (kPass == Algorithm::kPasses) {
    return 0;
  } else {
    constexpr std::size_t kRest = tile_result_bytes<Algorithm, kPass + 1>();
    constexpr std::size_t kThis = sizeof(TileResult<PartialOf<Algorithm, kPass, double>>);
    return kThis > kRest ? kThis : kRest;
  }
}

template <class Algorithm>
constexpr CudaShape cuda_shape() {
  return {.kind = CudaKind::kQuantizer,
          .pass_count = Algorithm::kPasses,
          .codes_after = Algorithm::kCodesAfter,
          .slice_result_bytes = sizeof(SliceResult<Algorithm>),
          .tile_result_bytes = tile_result_bytes<Algorithm>()};
}

}  // namespace hipress::kernels
