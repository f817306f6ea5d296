#pragma once

#include "kernels/codec/slice.hpp"
#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/quantizer_kernels.hpp"
#include "kernels/cuda/threads.cuh"
#include "kernels/frames/cuda_shape.hpp"
#include "kernels/frames/draws.hpp"
#include "kernels/frames/quantizer.hpp"

/// Frame of quantisers on a GPU: kernels around an algorithm's arithmetic. A thread is a lane; a
/// warp processes one tile. Only files of a single algorithm include this header.
namespace hipress::kernels {

struct ShuffleDown {
  int by;
  __device__ auto operator()(auto value) const { return __shfl_down_sync(kAllLanes, value, by); }
};

/// Combines lanes l and l + 16, then l + 8 …; lane 0 has the result.
template <class F, class Partial>
__device__ Partial combine_warp(Partial partial) {
  for (int by = kWarpThreads / 2; by > 0; by /= 2) {
    partial = combine(partial, partial.template each<F>(ShuffleDown{by}));
  }
  return partial;
}

/// Codes of a tile, collected for the message: lane r keeps the planes of the tile's word r.
template <int kPlanes>
struct TileCodes {
  std::uint32_t planes[kPlanes] = {};

  /// Takes the codes of word `row`, one per lane.
  __device__ void take(const bool (&codes)[kPlanes], int row, bool inside, int planes_used) {
    const int lane = threadIdx.x % kWarpThreads;
#pragma unroll
    for (int p = 0; p < kPlanes; ++p) {
      if (p >= planes_used) break;
      const std::uint32_t ballot = __ballot_sync(kAllLanes, codes[p] && inside);
      if (lane == row) planes[p] = ballot;
    }
  }

  __device__ void store(const EncodeSlice& slice, std::int64_t tile, int planes_used) const {
    const std::int64_t word = tile * kTileWords + threadIdx.x % kWarpThreads;
    if (word >= words_of(slice.elements)) return;
#pragma unroll
    for (int p = 0; p < kPlanes; ++p) {
      if (p < planes_used) slice.planes[word * planes_used + p] = planes[p];
    }
  }
};

template <class Algorithm>
using CoderOf = decltype(std::declval<const Algorithm&>().coder(
    std::declval<const typename Algorithm::Scalars&>(), std::declval<const DrawStream&>()));

/// Loads the levels of the message that is still to be subtracted from a slice's state, or else
/// zeros. Called by the whole thread block.
template <class Algorithm>
__device__ void load_owed_levels(const Algorithm& algorithm, const EncodeSlice& slice,
                                 float* owed) {
  const int count = 1 << algorithm.planes();
  const bool owes = slice.deferred != nullptr && slice.deferred->owed;
  for (int code = threadIdx.x; code < count; code += kThreadsPerBlock) {
    owed[code] = 0;
    if (owes) {
      const auto& wire = *reinterpret_cast<const typename Algorithm::Wire*>(slice.deferred->wire);
      owed[code] = algorithm.levels(wire, slice.elements)(code);
    }
  }
  __syncthreads();
}

/// Level to which `value` decodes, for algorithms with kCodesByValueAlone.
template <class Algorithm>
__device__ float level_of_value(const Algorithm& algorithm, float value, std::int64_t element,
                                const float* levels) {
  bool code[Algorithm::kMaxPlanes] = {};
  algorithm.coder(typename Algorithm::Scalars(), DrawStream())
      .template code<Algorithm::kMaxPlanes, float>(value, element, code);
  return level_of<Algorithm::kMaxPlanes, float>(code, levels);
}

/// Measures this lane's element of word `row` of a tile.
template <class Algorithm, int kPass, class F, CudaFeedback kFeedback, ValueType kType>
struct MeasureRow {
  static constexpr bool kCodes =
      kFeedback != CudaFeedback::kAtOnce && kPass == Algorithm::kCodesAfter;
  using Partial = PartialOf<Algorithm, kPass, F>;

  const Algorithm& algorithm;
  const EncodeSlice& slice;
  const MeasureOf<Algorithm, kPass> measure;
  const CoderOf<Algorithm> coder;
  const std::int64_t first_element;  ///< first element of the tile, plus the lane
  const float* owed;
  std::uint32_t flags = 0;
  TileCodes<Algorithm::kMaxPlanes> codes = {};

  __device__ Partial operator()(int row) {
    const std::int64_t element = first_element + row * kWordElements;
    const bool inside = element < slice.elements;
    const float input = inside ? load_value(slice.values, kType, element) : 0.0f;
    const std::uint32_t flag = non_finite_flag(input);
    flags |= flag;
    float residual = 0;
    if (kFeedback != CudaFeedback::kNone && inside) residual = slice.residual[element];
    if constexpr (kFeedback == CudaFeedback::kDeferred) {
      residual = residual - level_of_value(algorithm, residual, element, owed);
    }
    const float value = slice.rule(input, residual);
    if constexpr (kCodes) {
      bool code[Algorithm::kMaxPlanes] = {};
      coder.template code<Algorithm::kMaxPlanes, float>(value, element, code);
      codes.take(code, row, inside, algorithm.planes());
    }
    if constexpr (kFeedback == CudaFeedback::kDeferred) {
      if (inside) slice.residual[element] = has_bit(flag, 0x80000000u) ? residual : value;
    }
    return inside ? measure.template of<float>(value, element) : Partial::identity();
  }
};

/// A MeasureRow in double precision, for a tile whose sums overflow.
template <class Algorithm, int kPass, CudaFeedback kFeedback, ValueType kType>
struct MeasureRowInDouble {
  using Partial = PartialOf<Algorithm, kPass, double>;

  const EncodeSlice& slice;
  const MeasureOf<Algorithm, kPass> measure;
  const std::int64_t first_element;

  __device__ Partial operator()(int row) {
    const std::int64_t element = first_element + row * kWordElements;
    if (element >= slice.elements) return Partial::identity();
    float value;
    if constexpr (kFeedback == CudaFeedback::kDeferred) {
      value = slice.residual[element];  // v is stored there by now
    } else {
      value = slice.rule(load_value(slice.values, kType, element),
                         kFeedback == CudaFeedback::kNone ? 0.0f : slice.residual[element]);
    }
    return measure.template of<float>(value, element).template each<double>(Widen());
  }
};

template <class Algorithm>
__device__ typename Algorithm::Scalars scalars_before(const Algorithm& algorithm, int pass,
                                                      const EncodeSlice& slice,
                                                      const void* slice_results) {
  if (pass == 0) return algorithm.begin(slice.elements);
  return static_cast<const SliceResult<Algorithm>*>(slice_results)[slice.number].scalars;
}

/// A measuring pass over slices of kType; one warp per tile.
template <class Algorithm, int kPass, CudaFeedback kFeedback, ValueType kType>
__global__ void measure_tiles(const Algorithm algorithm, const Batch<EncodeSlice> batch,
                              void* tile_results, void* slice_results) {
  using Wide = PartialOf<Algorithm, kPass, double>;
  const EncodeSlice& slice = batch.slice_of(blockIdx.x);
  __shared__ float owed[1 << Algorithm::kMaxPlanes];
  if constexpr (kFeedback == CudaFeedback::kDeferred) load_owed_levels(algorithm, slice, owed);
  const std::int64_t tile = tile_of_warp(slice);
  if (tile * kTileElements >= slice.elements) return;
  const int lane = threadIdx.x % kWarpThreads;
  const auto scalars = scalars_before(algorithm, kPass, slice, slice_results);
  const std::int64_t first_element = tile * kTileElements + lane;
  const auto measure = algorithm.measure(Pass<kPass>(), scalars, slice.draws);

  MeasureRow<Algorithm, kPass, float, kFeedback, kType> row{
      algorithm, slice, measure, algorithm.coder(scalars, slice.draws), first_element, owed};
  const auto sums = combine_warp<float>(combine_tile(row));
  if constexpr (row.kCodes) row.codes.store(slice, tile, algorithm.planes());
  TileResult<Wide> result;
  result.sums = sums.template each<double>(Widen());
  result.flags = or_of_warp(row.flags);
  if (__shfl_sync(kAllLanes, static_cast<int>(sums.overflowed()), 0) != 0) {
    MeasureRowInDouble<Algorithm, kPass, kFeedback, kType> wide{slice, measure, first_element};
    result.sums = combine_warp<double>(combine_tile(wide));
  }
  if (lane == 0) {
    static_cast<TileResult<Wide>*>(tile_results)[slice.first_tile + tile] = result;
  }
}

/// Writes a message's start, and keeps its Wire if its levels are still to be subtracted from v.
template <class Algorithm>
__device__ void write_start(const Algorithm& algorithm, const EncodeSlice& slice,
                            const SliceResult<Algorithm>& result) {
  MessageStart<Algorithm> start = {};
  start.header.elements = static_cast<std::uint32_t>(slice.elements);
  start.header.tag = Algorithm::kTag;
  start.header.planes = static_cast<std::uint8_t>(algorithm.planes());
  start.header.non_finite = result.non_finite ? 1 : 0;
  if (!result.non_finite) start.wire = algorithm.wire(result.scalars);
  auto* words = reinterpret_cast<std::uint32_t*>(slice.message);
  for (int i = 0; i < kPlanesOffset<Algorithm> / 4; ++i) words[i] = 0;
  *reinterpret_cast<QuantizerHeader*>(slice.message) = start.header;
  *reinterpret_cast<typename Algorithm::Wire*>(slice.message + sizeof start.header) = start.wire;
  if (slice.deferred != nullptr) {
    slice.deferred->owed = !result.non_finite;
    *reinterpret_cast<typename Algorithm::Wire*>(slice.deferred->wire) = start.wire;
  }
  if (slice.message_bytes != nullptr) {
    *slice.message_bytes =
        quantizer_message_bytes(slice.elements, algorithm.planes(), kPlanesOffset<Algorithm>);
  }
}

/// Runs after each measuring pass and adds up the tiles in the order of frames/reduction.hpp. After
/// the last pass, also writes the start of the message. One thread block per slice.
template <class Algorithm, int kPass>
__global__ void conclude_slices(const Algorithm algorithm, const Batch<EncodeSlice> batch,
                                const void* tile_results, void* slice_results) {
  using Partial = PartialOf<Algorithm, kPass, double>;
  const EncodeSlice& slice = batch.slices[blockIdx.x];
  const auto* results = static_cast<const TileResult<Partial>*>(tile_results) + slice.first_tile;
  const std::int64_t tiles = (slice.elements + kTileElements - 1) / kTileElements;
  const std::int64_t blocks = (tiles + kBlockTiles - 1) / kBlockTiles;
  __shared__ Partial sums[kThreadsPerBlock];
  Partial total = Partial::identity();
  std::uint32_t flags = 0;
  for (std::int64_t first = 0; first < blocks; first += kThreadsPerBlock) {
    const std::int64_t block = first + threadIdx.x;
    Partial parts[kBlockTiles];
    for (int i = 0; i < kBlockTiles; ++i) {
      const std::int64_t tile = block * kBlockTiles + i;
      parts[i] = Partial::identity();
      if (tile < tiles) {
        parts[i] = results[tile].sums;
        flags |= results[tile].flags;
      }
    }
    combine_neighbours(parts, kBlockTiles);
    sums[threadIdx.x] = parts[0];
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int i = 0; i < kThreadsPerBlock && first + i < blocks; ++i) {
        total = combine(total, sums[i]);
      }
    }
    __syncthreads();
  }
  bool non_finite = __syncthreads_or((flags & 0x80000000u) != 0) != 0;
  if (threadIdx.x != 0) return;
  SliceResult<Algorithm>& result =
      static_cast<SliceResult<Algorithm>*>(slice_results)[slice.number];
  auto scalars = scalars_before(algorithm, kPass, slice, slice_results);
  if (!non_finite) algorithm.conclude(Pass<kPass>(), total, scalars);
  if constexpr (kPass + 1 == Algorithm::kPasses) {
    non_finite = non_finite || !can_be_sent(algorithm, algorithm.wire(scalars), slice.elements);
  }
  result.scalars = scalars;
  result.non_finite = non_finite;
  if constexpr (kPass + 1 == Algorithm::kPasses) write_start(algorithm, slice, result);
}

/// Runs last unless a measuring pass has written the codes: writes them, and the residual if it is
/// updated at once. A non-finite slice gets zero codes and keeps its residual. One warp per tile.
template <class Algorithm, ValueType kType>
__global__ void encode_tiles(const Algorithm algorithm, const Batch<EncodeSlice> batch,
                             const void* slice_results) {
  constexpr int kPlanes = Algorithm::kMaxPlanes;
  const EncodeSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t tile = tile_of_warp(slice);
  if (tile * kTileElements >= slice.elements) return;
  const auto& result = static_cast<const SliceResult<Algorithm>*>(slice_results)[slice.number];
  TileCodes<kPlanes> codes;
  if (!result.non_finite) {
    const auto coder = algorithm.coder(result.scalars, slice.draws);
    float levels[1 << kPlanes];
    if constexpr (Algorithm::kErrorFeedback) {
      fill_levels<kPlanes>(algorithm.levels(algorithm.wire(result.scalars), slice.elements),
                           levels);
    }
#pragma unroll 8
    for (int row = 0; row < kTileWords; ++row) {
      const std::int64_t element =
          tile * kTileElements + row * kWordElements + threadIdx.x % kWarpThreads;
      const bool inside = element < slice.elements;
      // A lane past the end takes any value of the slice; its code is ignored.
      const float value = slice.value<kType>(inside ? element : slice.elements - 1);
      bool code[kPlanes] = {};
      coder.template code<kPlanes, float>(value, element, code);
      codes.take(code, row, inside, algorithm.planes());
      if constexpr (Algorithm::kErrorFeedback) {
        if (slice.residual != nullptr && inside) {
          slice.residual[element] = value - level_of<kPlanes, float>(code, levels);
        }
      }
    }
  }
  codes.store(slice, tile, algorithm.planes());
}

/// Runs last if a measuring pass has written the codes. Of a non-finite slice, clears the codes and
/// restores a residual that was replaced by v. Changes no other slice.
template <class Algorithm>
__global__ void put_back(const Algorithm algorithm, const Batch<EncodeSlice> batch,
                         const void* slice_results) {
  const EncodeSlice& slice = batch.slice_of(blockIdx.x);
  const auto& result = static_cast<const SliceResult<Algorithm>*>(slice_results)[slice.number];
  const std::int64_t tile = tile_of_warp(slice);
  if (!result.non_finite || tile * kTileElements >= slice.elements) return;
  for (int row = 0; row < kTileWords; ++row) {
    const std::int64_t element =
        tile * kTileElements + row * kWordElements + threadIdx.x % kWarpThreads;
    if (element >= slice.elements) break;
    const float input = load_value(slice.values, slice.type, element);
    if (slice.deferred != nullptr && !has_bit(non_finite_flag(input), 0x80000000u)) {
      slice.residual[element] = slice.residual[element] - slice.rule(input, 0.0f);
    }
  }
  TileCodes<Algorithm::kMaxPlanes>().store(slice, tile, algorithm.planes());
}

/// Codec::settle() on a GPU.
template <class Algorithm>
__global__ void settle_tiles(const Algorithm algorithm, const Batch<EncodeSlice> batch) {
  const EncodeSlice& slice = batch.slice_of(blockIdx.x);
  __shared__ float owed[1 << Algorithm::kMaxPlanes];
  load_owed_levels(algorithm, slice, owed);
  const std::int64_t tile = tile_of_warp(slice);
  for (int row = 0; row < kTileWords; ++row) {
    const std::int64_t element =
        tile * kTileElements + row * kWordElements + threadIdx.x % kWarpThreads;
    if (element >= slice.elements) break;
    const float value = slice.residual[element];
    slice.residual[element] = value - level_of_value(algorithm, value, element, owed);
  }
}

// ---- decoding ----

/// Decodes; one warp per tile. Lane r reads the planes of the tile's word r and passes them to all
/// lanes.
template <class Algorithm>
__global__ void decode_tiles(const Algorithm algorithm, const Batch<DecodeSlice> batch) {
  constexpr int kPlanes = Algorithm::kMaxPlanes;
  __shared__ float levels[kMessagesPerLaunch][1 << kPlanes];
  const DecodeSlice& slice = batch.slice_of(blockIdx.x);
  const int planes_used = algorithm.planes();
  for (int i = threadIdx.x; i < slice.count << planes_used; i += kThreadsPerBlock) {
    const int message = i >> planes_used, code = i & ((1 << planes_used) - 1);
    levels[message][code] = not_a_number();
    if (slice.messages[message] == nullptr) continue;
    MessageStart<Algorithm> start;
    start.header = *reinterpret_cast<const QuantizerHeader*>(slice.messages[message]);
    start.wire = *reinterpret_cast<const typename Algorithm::Wire*>(slice.messages[message] +
                                                                    sizeof start.header);
    if (fits(start, algorithm, slice.elements) && start.header.non_finite == 0) {
      levels[message][code] = algorithm.levels(start.wire, slice.elements)(code);
    }
  }
  __syncthreads();
  const std::int64_t tile = tile_of_warp(slice);
  if (tile * kTileElements >= slice.elements) return;
  const int lane = threadIdx.x % kWarpThreads;
  const std::int64_t words = words_of(slice.elements);

  const bool adds = slice.mode == DecodeMode::kAdd;
  const std::int64_t first_element = tile * kTileElements + lane;
  float decoded[kTileWords] = {};
  if (adds) {
    load_rows(slice.read, slice.read_type, first_element, kWordElements, slice.elements, decoded);
  }
  if (adds && slice.own_divisor != 1) {
#pragma unroll
    for (float& value : decoded) value = value / slice.own_divisor;
  }
  for (int message = 0; message < slice.count; ++message) {
    std::uint32_t mine[kPlanes] = {};
    const std::int64_t word = tile * kTileWords + lane;
    if (slice.messages[message] != nullptr && word < words) {
      const auto* planes = reinterpret_cast<const std::uint32_t*>(slice.messages[message] +
                                                                  kPlanesOffset<Algorithm>);
#pragma unroll
      for (int p = 0; p < kPlanes; ++p) {
        if (p < planes_used) mine[p] = planes[word * planes_used + p];
      }
    }
#pragma unroll
    for (int row = 0; row < kTileWords; ++row) {
      std::uint32_t code = 0;
#pragma unroll
      for (int p = 0; p < kPlanes; ++p) {
        if (p < planes_used) code |= (__shfl_sync(kAllLanes, mine[p], row) >> lane & 1u) << p;
      }
      const float level = levels[message][code];
      decoded[row] = adds ? decoded[row] + level : level;
    }
  }
  if (adds && slice.sum_divisor != 1) {
#pragma unroll
    for (float& value : decoded) value = value / slice.sum_divisor;
  }
  store_rows(slice.values, slice.type, first_element, kWordElements, slice.elements, decoded);
}

#ifndef __CUDACC_RTC__  // NVRTC: user/algorithm_cuda.cpp looks the kernels up by name

template <class Algorithm, int kPass, ValueType kType>
void add_measure(CudaPassKernels& pass) {
  const void** measure = pass.measure[static_cast<int>(kType)];
  measure[0] = handle_of(measure_tiles<Algorithm, kPass, CudaFeedback::kNone, kType>);
  if constexpr (Algorithm::kErrorFeedback) {
    measure[1] = handle_of(measure_tiles<Algorithm, kPass, CudaFeedback::kAtOnce, kType>);
  }
  if constexpr (Algorithm::kErrorFeedback && kDeferrable<Algorithm>) {
    measure[2] = handle_of(measure_tiles<Algorithm, kPass, CudaFeedback::kDeferred, kType>);
  }
}

template <class Algorithm, int kPass>
void add_passes(CudaQuantizerKernels& kernels) {
  if constexpr (kPass < Algorithm::kPasses) {
    static_assert(kPass < kMaxCudaPasses);
    CudaPassKernels& pass = kernels.passes[kPass];
    pass.tile_result_bytes = sizeof(TileResult<PartialOf<Algorithm, kPass, double>>);
    add_measure<Algorithm, kPass, ValueType::kFloat32>(pass);
    add_measure<Algorithm, kPass, ValueType::kFloat16>(pass);
    add_measure<Algorithm, kPass, ValueType::kBfloat16>(pass);
    pass.conclude = handle_of(conclude_slices<Algorithm, kPass>);
    add_passes<Algorithm, kPass + 1>(kernels);
  }
}

template <class Algorithm>
CudaQuantizerKernels cuda_quantizer_kernels() {
  CudaQuantizerKernels kernels;
  kernels.pass_count = Algorithm::kPasses;
  kernels.codes_after = Algorithm::kCodesAfter;
  kernels.slice_result_bytes = sizeof(SliceResult<Algorithm>);
  add_passes<Algorithm, 0>(kernels);
  kernels.encode[0] = handle_of(encode_tiles<Algorithm, ValueType::kFloat32>);
  kernels.encode[1] = handle_of(encode_tiles<Algorithm, ValueType::kFloat16>);
  kernels.encode[2] = handle_of(encode_tiles<Algorithm, ValueType::kBfloat16>);
  kernels.put_back = handle_of(put_back<Algorithm>);
  if constexpr (kDeferrable<Algorithm>) kernels.settle = handle_of(settle_tiles<Algorithm>);
  kernels.decode = handle_of(decode_tiles<Algorithm>);
  return kernels;
}

#endif

}  // namespace hipress::kernels
