// Quantisers on a GPU: the arithmetic and the reduction order of the host loops, one lane per
// thread.

#include <utility>
#include <vector>

#include "kernels/cuda_batch.hpp"
#include "kernels/cuda_codec.hpp"
#include "kernels/draws.hpp"
#include "kernels/host_codec.hpp"
#include "kernels/quantizers.hpp"
#include "kernels/slice.hpp"

namespace hipress::kernels {

namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

/// One slice that is encoded.
struct EncodeSlice {
  const float* values;
  std::int64_t elements;
  ValueRule rule;
  float* residual;  ///< null: none
  std::byte* message;
  DrawStream draws;
  std::int64_t* message_bytes;
  std::int64_t first_block;
  std::int64_t first_tile;  ///< of the slice's tiles in the temporary memory

  __device__ std::uint32_t* planes() const {
    return reinterpret_cast<std::uint32_t*>(message + sizeof(Header));
  }
  __device__ float value(std::int64_t element) const {
    return rule(values[element], residual != nullptr ? residual[element] : 0.0f);
  }
};

/// What the first pass finds out about one tile.
template <class Algorithm>
struct TileResult {
  typename Algorithm::Statistics::template Partial<double> sums;
  std::uint32_t flags;  ///< non_finite_flag of the inputs
};

struct ShuffleDown {
  int by;
  __device__ auto operator()(auto value) const { return __shfl_down_sync(kAllLanes, value, by); }
};

/// Lanes l and l + 16, then l + 8 …; the result is lane 0's.
template <class F, class Partial>
__device__ Partial combine_warp(Partial partial) {
  for (int by = kWarpThreads / 2; by > 0; by /= 2) {
    partial = combine(partial, partial.template each<F>(ShuffleDown{by}));
  }
  return partial;
}

/// The | of all lanes' flags (__reduce_or_sync needs sm_80), for every lane.
__device__ std::uint32_t or_of_warp(std::uint32_t flags) {
  for (int by = kWarpThreads / 2; by > 0; by /= 2) flags |= __shfl_xor_sync(kAllLanes, flags, by);
  return flags;
}

/// The codes of a tile on their way to the message: lane r keeps the planes of the tile's word r.
template <int kPlanes>
struct TileCodes {
  std::uint32_t planes[kPlanes] = {};

  /// Takes the codes of word `row`, one of each lane.
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
      if (p < planes_used) slice.planes()[word * planes_used + p] = planes[p];
    }
  }
};

/// One word of a tile in the first pass, as this lane sees it.
template <class Algorithm, class F, bool kCodes>
struct MeasureRow {
  using Partial = typename Algorithm::Statistics::template Partial<F>;

  const EncodeSlice& slice;
  const typename Algorithm::Coder coder;
  const int planes_used;
  const std::int64_t first_element;  ///< of the tile, plus the lane
  std::uint32_t flags = 0;
  TileCodes<Algorithm::kMostPlanes> codes = {};

  __device__ Partial operator()(int row) {
    const std::int64_t element = first_element + row * kWordElements;
    const bool inside = element < slice.elements;
    const float input = inside ? slice.values[element] : 0.0f;
    flags |= non_finite_flag(input);
    float residual = 0;
    if (Algorithm::Statistics::kReadsValues && slice.residual != nullptr && inside) {
      residual = slice.residual[element];
    }
    const float value = slice.rule(input, residual);
    if constexpr (kCodes) {
      bool code[Algorithm::kMostPlanes] = {};
      coder.template code<Algorithm::kMostPlanes, float>(value, element, code);
      codes.take(code, row, inside, planes_used);
    }
    return inside ? Partial::of(value) : Partial::identity();
  }
};

/// First pass, a warp per tile: statistics, and the codes where nothing remains to be done
/// afterwards.
template <class Algorithm, bool kCodes>
__global__ void measure(const Algorithm algorithm, const Batch<EncodeSlice> batch,
                        TileResult<Algorithm>* results) {
  const EncodeSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t tile = tile_of_warp(slice);
  if (tile * kTileElements >= slice.elements) return;
  const int lane = threadIdx.x % kWarpThreads;
  const auto coder = algorithm.coder(Header(), slice.draws);
  const std::int64_t first_element = tile * kTileElements + lane;

  MeasureRow<Algorithm, float, kCodes> row{slice, coder, algorithm.planes(), first_element};
  const auto sums = combine_warp<float>(combine_tile(row));
  if constexpr (kCodes) row.codes.store(slice, tile, algorithm.planes());
  TileResult<Algorithm> result;
  result.sums = sums.template each<double>(Widen());
  result.flags = or_of_warp(row.flags);
  if (__shfl_sync(kAllLanes, static_cast<int>(sums.overflowed()), 0) != 0) {
    MeasureRow<Algorithm, double, false> row_in_double{slice, coder, 0, first_element};
    result.sums = combine_warp<double>(combine_tile(row_in_double));
  }
  if (lane == 0) results[slice.first_tile + tile] = result;
}

/// Between the passes, a thread block per slice: adds up the tiles in the fixed order, writes the
/// header.
template <class Algorithm>
__global__ void write_header(const Algorithm algorithm, const Batch<EncodeSlice> batch,
                             const TileResult<Algorithm>* results) {
  using Partial = typename Algorithm::Statistics::template Partial<double>;
  const EncodeSlice& slice = batch.slices[blockIdx.x];
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
        parts[i] = results[slice.first_tile + tile].sums;
        flags |= results[slice.first_tile + tile].flags;
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
  const bool non_finite = __syncthreads_or((flags & 0x80000000u) != 0) != 0;
  if (threadIdx.x != 0) return;
  Header header;
  if (non_finite) {
    header.non_finite = 1;
  } else {
    header = algorithm.header(total, slice.elements);
  }
  header.elements = static_cast<std::uint32_t>(slice.elements);
  header.algorithm = Algorithm::kTag;
  header.planes = static_cast<std::uint8_t>(algorithm.planes());
  *reinterpret_cast<Header*>(slice.message) = header;
  if (slice.message_bytes != nullptr) {
    *slice.message_bytes = plane_message_bytes(slice.elements, algorithm.planes());
  }
}

/// Second pass, a warp per tile: codes and residual. A slice that holds a NaN gets zeros and keeps
/// its residual.
template <class Algorithm>
__global__ void encode_tiles(const Algorithm algorithm, const Batch<EncodeSlice> batch) {
  constexpr int kPlanes = Algorithm::kMostPlanes;
  const EncodeSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t tile = tile_of_warp(slice);
  if (tile * kTileElements >= slice.elements) return;
  const Header header = *reinterpret_cast<const Header*>(slice.message);
  const auto coder = algorithm.coder(header, slice.draws);
  const int planes_used = algorithm.planes();
  TileCodes<kPlanes> codes;
  if (header.non_finite == 0) {
    float levels[1 << kPlanes];
    if constexpr (Algorithm::kErrorFeedback) {
      for (int code = 0; code < 1 << kPlanes; ++code) levels[code] = algorithm.level(header, code);
    }
#pragma unroll 8
    for (int row = 0; row < kTileWords; ++row) {
      const std::int64_t element =
          tile * kTileElements + row * kWordElements + threadIdx.x % kWarpThreads;
      const bool inside = element < slice.elements;
      // Behind the end any value of the slice will do; its code is not taken.
      const float value = slice.value(inside ? element : slice.elements - 1);
      bool code[kPlanes] = {};
      coder.template code<kPlanes, float>(value, element, code);
      codes.take(code, row, inside, planes_used);
      if constexpr (Algorithm::kErrorFeedback) {
        if (slice.residual != nullptr && inside) {
          slice.residual[element] = value - level_of<kPlanes, float>(code, levels);
        }
      }
    }
  }
  codes.store(slice, tile, planes_used);
}

// ---- decoding ----

constexpr int kMessagesPerLaunch = 8;

/// One slice that is decoded from up to kMessagesPerLaunch messages. With more of them, several
/// slices follow each other, the first with the own divisor, the last with the sum's.
struct DecodeSlice {
  const std::byte* messages[kMessagesPerLaunch];  ///< null: its length is wrong
  int count;
  DecodeMode mode;
  float own_divisor, sum_divisor;
  float* values;
  std::int64_t elements;
  std::int64_t first_block;
};

/// A warp per tile. Lane r reads the planes of the tile's word r; all lanes get them from it.
template <class Algorithm>
__global__ void decode_tiles(const Algorithm algorithm, const Batch<DecodeSlice> batch) {
  constexpr int kPlanes = Algorithm::kMostPlanes;
  __shared__ float levels[kMessagesPerLaunch][1 << kPlanes];
  const DecodeSlice& slice = batch.slice_of(blockIdx.x);
  const int planes_used = algorithm.planes();
  for (int i = threadIdx.x; i < slice.count << planes_used; i += kThreadsPerBlock) {
    const int message = i >> planes_used, code = i & ((1 << planes_used) - 1);
    Header header;
    header.non_finite = 1;
    if (slice.messages[message] != nullptr) {
      const Header found = *reinterpret_cast<const Header*>(slice.messages[message]);
      if (fits(found, algorithm, slice.elements)) header = found;
    }
    levels[message][code] = level_under(header, algorithm, code);
  }
  __syncthreads();
  const std::int64_t tile = tile_of_warp(slice);
  if (tile * kTileElements >= slice.elements) return;
  const int lane = threadIdx.x % kWarpThreads;
  const std::int64_t words = words_of(slice.elements);

  float decoded[kTileWords];
#pragma unroll
  for (int row = 0; row < kTileWords; ++row) {
    const std::int64_t element = tile * kTileElements + row * kWordElements + lane;
    decoded[row] = 0;
    if (slice.mode == DecodeMode::kAdd && element < slice.elements) {
      decoded[row] = slice.values[element];
      if (slice.own_divisor != 1) decoded[row] = decoded[row] / slice.own_divisor;
    }
  }
  for (int message = 0; message < slice.count; ++message) {
    std::uint32_t mine[kPlanes] = {};
    const std::int64_t word = tile * kTileWords + lane;
    if (slice.messages[message] != nullptr && word < words) {
      const auto* planes =
          reinterpret_cast<const std::uint32_t*>(slice.messages[message] + sizeof(Header));
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
      decoded[row] = slice.mode == DecodeMode::kAdd ? decoded[row] + level : level;
    }
  }
#pragma unroll
  for (int row = 0; row < kTileWords; ++row) {
    const std::int64_t element = tile * kTileElements + row * kWordElements + lane;
    if (element >= slice.elements) continue;
    const bool divides = slice.mode == DecodeMode::kAdd && slice.sum_divisor != 1;
    slice.values[element] = divides ? decoded[row] / slice.sum_divisor : decoded[row];
  }
}

// ---- the Codec ----

template <class Algorithm>
class CudaQuantizer : public Codec {
 public:
  explicit CudaQuantizer(const Algorithm& algorithm) : algorithm_(algorithm) {}

  const CodecTraits& traits() const override {
    static constexpr CodecTraits kTraits = quantizer_traits<Algorithm>();
    return kTraits;
  }

  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return plane_message_bytes(elements, algorithm_.planes());
  }

  void encode(std::span<const EncodeItem> items, void* stream) const override {
    // Slices with a residual take two passes, the others may take one: they do not share launches.
    std::vector<EncodeSlice> plain, feeding_back;
    std::int64_t tiles = 0;
    for (const EncodeItem& item : items) {
      if (item.elements <= 0) continue;
      EncodeSlice slice = {};
      slice.values = item.values;
      slice.elements = item.elements;
      slice.residual = Algorithm::kErrorFeedback ? item.state.data : nullptr;
      slice.rule = ValueRule::of(item);
      slice.rule.adds_residual = slice.residual != nullptr;
      slice.message = item.message;
      slice.draws = draw_stream(item.key);
      slice.message_bytes = item.message_bytes;
      slice.first_tile = tiles;
      tiles += (item.elements + kTileElements - 1) / kTileElements;
      (slice.residual != nullptr ? feeding_back : plain).push_back(slice);
    }
    if (tiles == 0) return;
    const auto on = static_cast<cudaStream_t>(stream);
    TileResult<Algorithm>* results = nullptr;
    check_cuda(cudaMallocAsync(&results, tiles * sizeof(*results), on),
               "allocating temporary memory for an encode");
    for_each_batch(std::span<const EncodeSlice>(plain), [&](const Batch<EncodeSlice>& batch) {
      encode_batch<Algorithm::kCodesNeedHeader>(batch, results, on);
    });
    for_each_batch(
        std::span<const EncodeSlice>(feeding_back),
        [&](const Batch<EncodeSlice>& batch) { encode_batch<true>(batch, results, on); });
    check_cuda(cudaFreeAsync(results, on), "freeing temporary memory of an encode");
  }

  void decode(std::span<const DecodeItem> items, void* stream) const override {
    std::size_t parts = 0;
    for (const DecodeItem& item : items) parts = std::max(parts, parts_of(item));
    // The parts of one slice depend on each other, so each goes into a launch of its own.
    for (std::size_t part = 0; part < parts; ++part) {
      std::vector<DecodeSlice> slices;
      for (const DecodeItem& item : items) {
        if (item.elements > 0 && part < parts_of(item)) slices.push_back(part_of(item, part));
      }
      for_each_batch(std::span<const DecodeSlice>(slices), [&](const Batch<DecodeSlice>& batch) {
        decode_tiles<<<static_cast<unsigned>(batch.blocks), kThreadsPerBlock, 0,
                       static_cast<cudaStream_t>(stream)>>>(algorithm_, batch);
      });
    }
  }

 private:
  template <bool kTwoPasses>
  void encode_batch(const Batch<EncodeSlice>& batch, TileResult<Algorithm>* results,
                    cudaStream_t stream) const {
    const auto blocks = static_cast<unsigned>(batch.blocks);
    measure<Algorithm, !kTwoPasses>
        <<<blocks, kThreadsPerBlock, 0, stream>>>(algorithm_, batch, results);
    write_header<<<batch.count, kThreadsPerBlock, 0, stream>>>(algorithm_, batch, results);
    if constexpr (kTwoPasses) {
      encode_tiles<<<blocks, kThreadsPerBlock, 0, stream>>>(algorithm_, batch);
    }
  }

  /// Launches that an item needs; one if there is nothing to add, for the divisions.
  static std::size_t parts_of(const DecodeItem& item) {
    return std::max<std::size_t>(
        1, (item.messages.size() + kMessagesPerLaunch - 1) / kMessagesPerLaunch);
  }

  DecodeSlice part_of(const DecodeItem& item, std::size_t part) const {
    const std::size_t first = part * kMessagesPerLaunch;
    const std::size_t last = std::min(first + kMessagesPerLaunch, item.messages.size());
    DecodeSlice slice = {};
    for (std::size_t i = first; i < last; ++i) {
      const bool fits = item.message_bytes[i] == encoded_bytes(item.elements);
      slice.messages[i - first] = fits ? item.messages[i] : nullptr;
    }
    slice.count = static_cast<int>(last - first);
    slice.mode = item.mode;
    slice.own_divisor = part == 0 ? item.own_divisor : 1;
    slice.sum_divisor = part + 1 == parts_of(item) ? item.sum_divisor : 1;
    slice.values = item.values;
    slice.elements = item.elements;
    return slice;
  }

  const Algorithm algorithm_;
};

}  // namespace

template <class Algorithm>
std::unique_ptr<Codec> make_cuda_quantizer(const Algorithm& algorithm) {
  return std::make_unique<CudaQuantizer<Algorithm>>(algorithm);
}

#define HIPRESS_QUANTIZER(Algorithm) \
  template std::unique_ptr<Codec> make_cuda_quantizer(const Algorithm&);
HIPRESS_FOR_EACH_QUANTIZER(HIPRESS_QUANTIZER)
#undef HIPRESS_QUANTIZER

}  // namespace hipress::kernels
