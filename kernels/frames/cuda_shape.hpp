#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/frames/quantizer.hpp"

/// What a quantiser's kernels leave in temporary memory between the passes. Host compilers see it
/// too: who launches kernels that were compiled at run time cannot ask them.
namespace hipress::kernels {

/// What a measuring pass finds out about one tile.
template <class Partial>
struct TileResult {
  Partial sums;
  std::uint32_t flags;  ///< non_finite_flag of the inputs
};

/// What is known of a slice between the passes.
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

/// Which frame an algorithm's kernels are from.
enum class CudaKind { kNone, kQuantizer, kSparsifier, kBlocks };

/// How an algorithm's kernels are launched.
struct CudaShape {
  CudaKind kind = CudaKind::kNone;  ///< kNone: it runs on CPUs only
  // Of quantisers only:
  int pass_count = 0;
  int codes_after = 0;
  std::size_t slice_result_bytes = 0;
  std::size_t tile_result_bytes = 0;  ///< most of all passes
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
