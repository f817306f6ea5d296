#pragma once

#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/block_quantizer_kernels.hpp"
#include "kernels/cuda/quantizer.cuh"
#include "kernels/cuda/threads.cuh"
#include "kernels/frames/block_quantizer.hpp"
#include "kernels/frames/draws.hpp"

/// Frame of block quantisers on a GPU: kernels around an algorithm's arithmetic. A thread is a
/// lane. A warp processes one block and holds its words in registers: row r of lane l is element 32
/// r + l of the block. Only files of a single algorithm include this header.
namespace hipress::kernels {

/// Blocks of the slice that a warp processes: the first, and the distance to the next.
struct BlocksOfWarp {
  std::int64_t first, step;
};

template <class Slice>
__device__ BlocksOfWarp blocks_of_warp(const Slice& slice) {
  const std::int64_t launched = (slice.elements + kElementsPerBlock - 1) / kElementsPerBlock;
  return {(static_cast<std::int64_t>(blockIdx.x) - slice.first_block) * kWarpsPerBlock +
              threadIdx.x / kWarpThreads,
          launched * kWarpsPerBlock};
}

struct FromFirstLane {
  __device__ auto operator()(auto value) const { return __shfl_sync(kAllLanes, value, 0); }
};

/// Rotates a block of `count` elements; lane l holds elements l, l + 32 … in `rows`.
__device__ inline void rotate_block(float (&rows)[kMaxBlockWords], int count) {
  const int lane = threadIdx.x % kWarpThreads;
#pragma unroll
  for (int row = 0; row < kMaxBlockWords; ++row) {
    const int first = row * kWordElements;
    if (first >= count) break;
    const int offset = first + lane;
    const int size = offset < count ? rotation_size(offset, count) : 1;
    float value = rows[row] * rotation_scale(size);
#pragma unroll
    for (int apart = 1; apart < kWordElements; apart *= 2) {
      const float partner = __shfl_xor_sync(kAllLanes, value, apart);
      const float turned = (lane & apart) != 0 ? -value : value;
      if (apart < size) value = partner + turned;
    }
    rows[row] = value;
  }
#pragma unroll
  for (int apart = 1; apart < kMaxBlockWords; apart *= 2) {
#pragma unroll
    for (int row = 0; row < kMaxBlockWords; ++row) {
      if ((row & apart) != 0) continue;
      const int first = row * kWordElements;
      if (first >= count || rotation_size(first, count) <= apart * kWordElements) continue;
      const float a = rows[row], b = rows[row + apart];
      rows[row] = a + b;
      rows[row + apart] = a - b;
    }
  }
}

/// Writes a word's codes; `code` is the one of this lane's element.
__device__ inline void store_word_codes(int bits, std::uint8_t* to, std::uint32_t code) {
  const int lane = threadIdx.x % kWarpThreads;
  if (bits == 8) {
    to[lane] = static_cast<std::uint8_t>(code);
  } else if (bits == 4) {
    const std::uint32_t upper = __shfl_down_sync(kAllLanes, code, kWordElements / 2);
    if (lane < kWordElements / 2) to[lane] = static_cast<std::uint8_t>(code | upper << 4);
  } else {
    std::uint32_t mine = 0;
    for (int p = 0; p < bits; ++p) {
      const std::uint32_t plane = __ballot_sync(kAllLanes, has_bit(code, 1u << p));
      if (lane == p) mine = plane;
    }
    if (lane < bits) reinterpret_cast<std::uint32_t*>(to)[lane] = mine;
  }
}

__device__ inline std::uint32_t load_word_code(int bits, const std::uint8_t* from) {
  const int lane = threadIdx.x % kWarpThreads;
  if (bits == 8) return from[lane];
  if (bits == 4) {
    const std::uint32_t both = from[lane % (kWordElements / 2)];
    return lane < kWordElements / 2 ? both & 15u : both >> 4;
  }
  std::uint32_t code = 0;
  for (int p = 0; p < bits; ++p) {
    code |= (reinterpret_cast<const std::uint32_t*>(from)[p] >> lane & 1u) << p;
  }
  return code;
}

/// Loads a block's values v; lane l gets elements l, l + 32 …. A residual makes v finite even where
/// the input is not, so the inputs' non-finite flags are then added to `flags`.
__device__ inline void load_values(const BlockEncodeSlice& slice, ValueType type,
                                   std::int64_t first, int count, float (&rows)[kMaxBlockWords],
                                   std::uint32_t& flags) {
  const int lane = threadIdx.x % kWarpThreads;
#pragma unroll
  for (int row = 0; row < kMaxBlockWords; ++row) {
    const int offset = row * kWordElements + lane;
    rows[row] = 0;
    if (offset >= count) continue;
    const float input = load_value(slice.values, type, first + offset);
    if (slice.residual == nullptr) {
      rows[row] = slice.rule(input, 0.0f);
    } else {
      flags |= non_finite_flag(input);
      rows[row] = slice.rule(input, slice.residual[first + offset]);
    }
  }
}

/// The floats of a block in a message.
template <class Algorithm>
__device__ const float* sent_of(const std::byte* message, std::int64_t block) {
  return reinterpret_cast<const float*>(message + kSentOffset) + block * Algorithm::kSent;
}

/// The codes of the block that begins at element `first`.
template <class Algorithm>
__device__ const std::uint8_t* codes_of(const Algorithm& algorithm, const std::byte* message,
                                        const BlockLayout& layout, std::int64_t first) {
  return reinterpret_cast<const std::uint8_t*>(message + layout.codes_offset) +
         first / kWordElements * code_bytes(code_bits(algorithm));
}

/// Decodes a block's codes and rotates the values back; lane l gets elements l, l + 32 ….
template <class Algorithm>
__device__ void decode_block(const Algorithm& algorithm, const std::uint8_t* codes,
                             const typename Algorithm::DecodedBlock& of_block, int count,
                             float (&rows)[kMaxBlockWords]) {
  const int lane = threadIdx.x % kWarpThreads;
  const int bits = code_bits(algorithm);
  const auto levels = algorithm.levels();
#pragma unroll
  for (int row = 0; row < kMaxBlockWords; ++row) {
    rows[row] = 0;
    if (row * kWordElements + lane < count) {
      rows[row] =
          levels.template of<float>(of_block, load_word_code(bits, codes + row * code_bytes(bits)));
    }
  }
  if (algorithm.rotates()) rotate_block(rows, count);
}

/// Writes the floats and codes of blocks; one warp per block.
template <class Algorithm, ValueType kType>
__global__ void encode_blocks(const Algorithm algorithm, const Batch<BlockEncodeSlice> batch) {
  const BlockEncodeSlice& slice = batch.slice_of(blockIdx.x);
  const BlockLayout layout = block_layout(algorithm, slice.elements);
  const BlocksOfWarp mine = blocks_of_warp(slice);
  const int lane = threadIdx.x % kWarpThreads;
  const int bits = code_bits(algorithm);
  const auto measure = algorithm.measure(slice.draws);
  const auto block_code = algorithm.encoded_block_code();
  const auto coder = algorithm.coder(slice.draws);
  using Partial = typename decltype(measure)::template Partial<float>;
  for (std::int64_t block = mine.first; block < layout.blocks; block += mine.step) {
    const std::int64_t first = block * algorithm.block();
    const std::int64_t left = slice.elements - first;
    const int count = left < algorithm.block() ? static_cast<int>(left) : algorithm.block();
    float rows[kMaxBlockWords];
    std::uint32_t flags = 0;
    load_values(slice, kType, first, count, rows, flags);
    if (algorithm.rotates()) rotate_block(rows, count);
    Partial found = Partial::identity();
#pragma unroll
    for (int row = 0; row < kMaxBlockWords; ++row) {
      const int offset = row * kWordElements + lane;
      if (offset >= count) continue;
      flags |= non_finite_flag(rows[row]);
      found = combine(found, measure.template of<float>(rows[row], first + offset));
    }
    // combine_warp() leaves the result in lane 0; all lanes take it from there.
    const Partial whole = combine_warp<float>(found).template each<float>(FromFirstLane());
    const auto made = block_code.of(whole);
    bool finite = true;
    for (int i = 0; i < Algorithm::kSent; ++i) finite = finite && is_finite(made.sent[i]);
    auto* const sent =
        reinterpret_cast<float*>(slice.message + kSentOffset) + block * Algorithm::kSent;
    if (lane < Algorithm::kSent) sent[lane] = made.sent[lane];
    auto* const codes = reinterpret_cast<std::uint8_t*>(slice.message + layout.codes_offset) +
                        first / kWordElements * code_bytes(bits);
#pragma unroll
    for (int row = 0; row < kMaxBlockWords; ++row) {
      if (row * kWordElements >= count) break;
      const int offset = row * kWordElements + lane;
      const std::uint32_t code =
          offset < count ? coder.template of<float>(made, rows[row], first + offset) : 0u;
      store_word_codes(bits, codes + row * code_bytes(bits), code);
    }
    if constexpr (Algorithm::kErrorFeedback) {
      if (slice.residual != nullptr) {  // the residual, v minus the decoded block, stays finite
        __syncwarp();
        decode_block(algorithm, codes, algorithm.decoded_block_code().of(made.sent), count, rows);
#pragma unroll
        for (int row = 0; row < kMaxBlockWords; ++row) flags |= non_finite_flag(rows[row]);
      }
    }
    flags = or_of_warp(flags);
    if (lane == 0 && (!finite || has_bit(flags, 0x80000000u))) *slice.non_finite = 1;
  }
}

/// Residual = v minus the decoded message; one warp per block.
template <class Algorithm>
__device__ void update_residual(const Algorithm& algorithm, const BlockEncodeSlice& slice,
                                const BlockLayout& layout) {
  const BlocksOfWarp mine = blocks_of_warp(slice);
  const int lane = threadIdx.x % kWarpThreads;
  for (std::int64_t block = mine.first; block < layout.blocks; block += mine.step) {
    const std::int64_t first = block * algorithm.block();
    const std::int64_t left = slice.elements - first;
    const int count = left < algorithm.block() ? static_cast<int>(left) : algorithm.block();
    float values[kMaxBlockWords], decoded[kMaxBlockWords];
    std::uint32_t flags = 0;
    load_values(slice, slice.type, first, count, values, flags);
    decode_block(algorithm, codes_of(algorithm, slice.message, layout, first),
                 algorithm.decoded_block_code().of(sent_of<Algorithm>(slice.message, block)), count,
                 decoded);
#pragma unroll
    for (int row = 0; row < kMaxBlockWords; ++row) {
      const int offset = row * kWordElements + lane;
      if (offset < count) slice.residual[first + offset] = values[row] - decoded[row];
    }
  }
}

/// Runs after encode_blocks, with the same grid. Writes the message's start, the padding before the
/// codes, and the residual. A non-finite slice gets zeros after the start, and keeps its residual.
template <class Algorithm>
__global__ void conclude_blocks(const Algorithm algorithm, const Batch<BlockEncodeSlice> batch) {
  const BlockEncodeSlice& slice = batch.slice_of(blockIdx.x);
  const BlockLayout layout = block_layout(algorithm, slice.elements);
  const std::int64_t launched = (slice.elements + kElementsPerBlock - 1) / kElementsPerBlock;
  const std::int64_t number = static_cast<std::int64_t>(blockIdx.x) - slice.first_block;
  const std::int64_t thread = number * kThreadsPerBlock + threadIdx.x;
  const bool non_finite = *slice.non_finite != 0;
  auto* const words = reinterpret_cast<std::uint32_t*>(slice.message);
  const std::int64_t sent_end = kSentOffset / 4 + layout.blocks * Algorithm::kSent;
  const std::int64_t from = non_finite ? kSentOffset / 4 : sent_end;
  const std::int64_t to = non_finite ? layout.bytes / 4 : layout.codes_offset / 4;
  for (std::int64_t i = from + thread; i < to; i += launched * kThreadsPerBlock) words[i] = 0;
  if constexpr (Algorithm::kErrorFeedback) {
    if (slice.residual != nullptr && !non_finite) update_residual(algorithm, slice, layout);
  }
  if (thread != 0) return;
  for (int i = 0; i < kSentOffset / 4; ++i) words[i] = 0;
  QuantizerHeader header;
  header.elements = static_cast<std::uint32_t>(slice.elements);
  header.tag = Algorithm::kTag;
  header.planes = static_cast<std::uint8_t>(code_bits(algorithm));
  header.non_finite = non_finite ? 1 : 0;
  *reinterpret_cast<QuantizerHeader*>(slice.message) = header;
  if (slice.message_bytes != nullptr) *slice.message_bytes = layout.bytes;
}

/// Decodes blocks; one warp per block. A damaged message gives NaN.
template <class Algorithm>
__global__ void decode_blocks(const Algorithm algorithm, const Batch<DecodeSlice> batch) {
  const DecodeSlice& slice = batch.slice_of(blockIdx.x);
  const BlockLayout layout = block_layout(algorithm, slice.elements);
  const BlocksOfWarp mine = blocks_of_warp(slice);
  const int lane = threadIdx.x % kWarpThreads;
  const auto block_code = algorithm.decoded_block_code();
  const bool adds = slice.mode == DecodeMode::kAdd;
  const Divisor own = Divisor::of(slice.own_divisor), sum = Divisor::of(slice.sum_divisor);
  for (std::int64_t block = mine.first; block < layout.blocks; block += mine.step) {
    const std::int64_t first = block * algorithm.block();
    const std::int64_t left = slice.elements - first;
    const int count = left < algorithm.block() ? static_cast<int>(left) : algorithm.block();
    float total[kMaxBlockWords];
#pragma unroll
    for (int row = 0; row < kMaxBlockWords; ++row) {
      const int offset = row * kWordElements + lane;
      total[row] = adds && offset < count
                       ? own(load_value(slice.read, slice.read_type, first + offset))
                       : 0.0f;
    }
    for (int message = 0; message < slice.count; ++message) {
      const std::byte* const from = slice.messages[message];
      bool numbers = from != nullptr;
      float sent[Algorithm::kSent] = {};
      if (numbers) {
        const QuantizerHeader header = *reinterpret_cast<const QuantizerHeader*>(from);
        numbers = begins_as(header, algorithm, slice.elements) && header.non_finite == 0;
        for (int i = 0; i < Algorithm::kSent; ++i) {
          sent[i] = sent_of<Algorithm>(from, block)[i];
          numbers = numbers && is_finite(sent[i]);
        }
      }
      float decoded[kMaxBlockWords] = {};
      if (numbers) {
        decode_block(algorithm, codes_of(algorithm, from, layout, first), block_code.of(sent),
                     count, decoded);
      }
#pragma unroll
      for (int row = 0; row < kMaxBlockWords; ++row) {
        const float level = numbers ? decoded[row] : not_a_number();
        total[row] = adds ? total[row] + level : level;
      }
    }
#pragma unroll
    for (int row = 0; row < kMaxBlockWords; ++row) {
      const int offset = row * kWordElements + lane;
      if (offset >= count) continue;
      store_value(slice.values, slice.type, first + offset, adds ? sum(total[row]) : total[row]);
    }
  }
}

#ifndef __CUDACC_RTC__  // NVRTC: user/algorithm_cuda.cpp looks the kernels up by name

template <class Algorithm>
CudaBlockKernels cuda_block_kernels() {
  CudaBlockKernels kernels;
  kernels.encode[0] = handle_of(encode_blocks<Algorithm, ValueType::kFloat32>);
  kernels.encode[1] = handle_of(encode_blocks<Algorithm, ValueType::kFloat16>);
  kernels.encode[2] = handle_of(encode_blocks<Algorithm, ValueType::kBfloat16>);
  kernels.conclude = handle_of(conclude_blocks<Algorithm>);
  kernels.decode = handle_of(decode_blocks<Algorithm>);
  return kernels;
}

#endif

}  // namespace hipress::kernels
