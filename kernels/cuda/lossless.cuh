#pragma once

#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/threads.cuh"
#include "kernels/frames/typed_values.hpp"
#include "kernels/lossless/format.hpp"

/// Kernels of the lossless codec; messages (lossless/codec.hpp) have the same bits as on hosts.
///
/// An encode launches three kernels:
///
///   measure_chunks  one thread block per chunk: the chunk's form, the lengths of its codes by the
///                   host's algorithm, and the bit of the streams at which each thread begins
///   place_chunks    the place of each chunk in the message; writes the message's start
///   write_chunks    one thread block per chunk: writes every bit to its final place
///
/// A decode launches three kernels for each message of a slice:
///
///   find_chunks     one thread goes from chunk to chunk and detects a message that no encode wrote
///   decode_chunks   exponents, one thread per stream: four threads of a chunk's thread block
///   put_values      joins exponents and the rest of each value, and adds or stores the values
///
/// A damaged message sets its slice to NaN. Nothing outside the message is read.
namespace hipress::kernels::lossless {

static_assert(kThreadsPerBlock == kSymbols, "a thread has a symbol");
static_assert(kFloatsOfChunk % kElementsPerBlock == 0, "no thread block has parts of two chunks");

struct Chunk {
  std::int64_t number, first, count;  ///< index, first element, number of elements

  /// The chunk that contains an element.
  __device__ static Chunk of(std::int64_t element, ValueType type, std::int64_t elements) {
    const std::int64_t each = chunk_elements(type), number = element / each;
    return {number, number * each, min(each, elements - number * each)};
  }
};

template <class Slice>
__device__ std::int64_t first_of_block(const Slice& slice) {
  return (static_cast<std::int64_t>(blockIdx.x) - slice.first_block) * kElementsPerBlock;
}

// ---- encoding ----

/// Results of measure_chunks and place_chunks for a chunk.
struct ChunkPlan {
  std::int64_t at;      ///< offset in the message, in bytes
  std::uint32_t bytes;  ///< ChunkStart::bytes
  Form form;
  std::uint32_t stream_bytes[kStreams];
  std::uint8_t lengths[kSymbols];
  std::uint32_t first_bits[kThreadsPerBlock];  ///< per thread: bit where its Run begins
};

struct LosslessSlice {
  const void* values;
  std::int64_t elements;
  ValueType type;          ///< type of the values
  ValueType message_type;  ///< fp32 if the values are divided
  Divisor divisor;
  std::byte* message;
  std::int64_t* message_bytes;
  ChunkPlan* plans;
  std::int64_t first_block;

  /// Bits of a number in the message's type.
  __device__ std::uint32_t bits(std::int64_t i) const {
    if (divisor.divides) return divided(load_value(values, type, i));
    if (type == ValueType::kFloat32) return static_cast<const std::uint32_t*>(values)[i];
    return static_cast<const std::uint16_t*>(values)[i];
  }

 private:
  /// Bits of value / divisor. A NaN only becomes quiet, as on a CPU: a GPU's division would lose
  /// its payload.
  __device__ std::uint32_t divided(float value) const {
    const std::uint32_t bits = as_bits(value);
    return (bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x00400000u : as_bits(divisor(value));
  }
};

__device__ inline std::uint16_t narrowed(ValueType narrow, std::uint32_t bits) {
  const float value = as_float(bits);
  return static_cast<std::uint16_t>(narrow == ValueType::kFloat16 ? Fp16::encode(value)
                                                                  : Bf16::encode(value));
}
__device__ inline std::uint32_t widened(ValueType narrow, std::uint16_t code) {
  return as_bits(load_value(&code, narrow, 0));
}

/// The numbers of a chunk in the type in which they are coded.
struct CodedNumbers {
  const LosslessSlice& slice;
  Chunk chunk;
  ValueType type;

  __device__ static CodedNumbers of(const LosslessSlice& slice, const Chunk& chunk, Form form) {
    return {slice, chunk, coded_type(form, slice.message_type)};
  }
  __device__ std::uint32_t bits(std::int64_t i) const {
    const std::uint32_t bits = slice.bits(chunk.first + i);
    return type == slice.message_type ? bits : narrowed(type, bits);
  }
  __device__ std::uint8_t exponent(std::int64_t i) const { return exponent_of(type, bits(i)); }

  /// True if narrowing is exact for all numbers. Called by the whole thread block, which checks
  /// kAtOnce numbers at a time and stops after the first inexact one.
  __device__ bool are_exact() const {
    if (type == slice.message_type) return true;
    constexpr std::int64_t kAtOnce = 8 * kThreadsPerBlock;
    for (std::int64_t first = 0; first < chunk.count; first += kAtOnce) {
      const std::int64_t end = min(first + kAtOnce, chunk.count);
      bool exact = true;
      for (std::int64_t i = first + threadIdx.x; i < end; i += kThreadsPerBlock) {
        const std::uint32_t wide = slice.bits(chunk.first + i);
        exact = exact && widened(type, narrowed(type, wide)) == wide;
      }
      if (__syncthreads_and(exact ? 1 : 0) == 0) return false;
    }
    return true;
  }
};

/// Range of a stream's exponents that one thread writes.
struct Run {
  static constexpr int kThreadsPerStream = kThreadsPerBlock / kStreams;
  int stream, number;  ///< stream, and index of the thread in it
  std::int64_t first, end;

  __device__ static Run of_thread(std::int64_t count) {
    const int stream = static_cast<int>(threadIdx.x) / kThreadsPerStream;
    const int number = static_cast<int>(threadIdx.x) % kThreadsPerStream;
    const std::int64_t begin = first_of_stream(stream, count);
    const std::int64_t end = first_of_stream(stream + 1, count);
    const std::int64_t each = (end - begin + kThreadsPerStream - 1) / kThreadsPerStream;
    const std::int64_t first = min(begin + number * each, end);
    return {stream, number, first, min(first + each, end)};
  }
};

/// Shared memory of a thread block that measures a chunk.
struct MeasureRoom {
  /// Counts per warp; in the end, the first warp's are the totals.
  std::uint32_t counts[kWarpsPerBlock][kSymbols];
  std::uint8_t present[kSymbols];  ///< symbols that occur, by ascending count
  std::uint8_t lengths[kSymbols];
  TreeRoom tree;
  std::uint64_t begins[kStreams + 1];  ///< first bit of each stream
};

__device__ inline void count_exponents(const CodedNumbers& numbers, MeasureRoom& room) {
  const int symbol = threadIdx.x, warp = threadIdx.x / kWarpThreads;
  for (auto& counts : room.counts) counts[symbol] = 0;
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < numbers.chunk.count; i += kThreadsPerBlock) {
    atomicAdd(&room.counts[warp][numbers.exponent(i)], 1u);
  }
  __syncthreads();
  for (int other = 1; other < kWarpsPerBlock; ++other) {
    room.counts[0][symbol] += room.counts[other][symbol];
  }
  __syncthreads();
}

__device__ inline void choose_lengths(MeasureRoom& room) {
  const int symbol = threadIdx.x;
  const std::uint32_t count = room.counts[0][symbol];
  int before = 0;
  for (int other = 0; other < kSymbols; ++other) {
    const std::uint32_t its = room.counts[0][other];
    before += its > 0 && (its < count || (its == count && other < symbol)) ? 1 : 0;
  }
  if (count > 0) room.present[before] = static_cast<std::uint8_t>(symbol);
  room.lengths[symbol] = 0;
  const int present = __syncthreads_count(count > 0 ? 1 : 0);
  if (symbol == 0) find_lengths(room.present, present, room.counts[0], room.tree, room.lengths);
  __syncthreads();
}

/// Upper bound of the streams' total size, in bytes.
__device__ inline std::int64_t most_stream_bytes(const MeasureRoom& room) {
  std::uint64_t bits = 0;
  sum_before(std::uint64_t{room.counts[0][threadIdx.x]} * room.lengths[threadIdx.x], bits);
  return static_cast<std::int64_t>(bits / 8) + kStreams;
}

/// Chooses the first form that shrinks the chunk, in the host's order; kRaw if none does. Leaves
/// the code lengths in `room`.
__device__ inline Form choose_form(const LosslessSlice& slice, const Chunk& chunk,
                                   MeasureRoom& room) {
  constexpr int kForms = 3;
  constexpr Form kOrder[kForms] = {Form::kCodedAsBfloat16, Form::kCodedAsFloat16, Form::kCoded};
  for (int i = 0; i < kForms; ++i) {
    const Form form = kOrder[i];
    if (!is_known(form, slice.message_type)) continue;
    const CodedNumbers numbers = CodedNumbers::of(slice, chunk, form);
    if (!numbers.are_exact()) continue;
    count_exponents(numbers, room);
    choose_lengths(room);
    if (!would_not_shrink(numbers.type, chunk.count, most_stream_bytes(room))) return form;
  }
  return Form::kRaw;
}

/// Computes the sizes of the streams, and the first bit of each thread.
__device__ inline void plan_streams(const CodedNumbers& numbers, MeasureRoom& room,
                                    ChunkPlan& plan) {
  const Run run = Run::of_thread(numbers.chunk.count);
  std::uint64_t bits = 0, total = 0;
  for (std::int64_t i = run.first; i < run.end; ++i) bits += room.lengths[numbers.exponent(i)];
  const std::uint64_t before = sum_before(bits, total);
  if (run.number == 0) room.begins[run.stream] = before;
  if (threadIdx.x == 0) room.begins[kStreams] = total;
  __syncthreads();
  std::uint32_t bytes = 0, bytes_before = 0;
  for (int stream = 0; stream < kStreams; ++stream) {
    if (stream == run.stream) bytes_before = bytes;
    const auto own =
        static_cast<std::uint32_t>((room.begins[stream + 1] - room.begins[stream] + 7) / 8);
    if (threadIdx.x == 0) plan.stream_bytes[stream] = own;
    bytes += own;
  }
  plan.first_bits[threadIdx.x] =
      bytes_before * 8 + static_cast<std::uint32_t>(before - room.begins[run.stream]);
  plan.lengths[threadIdx.x] = room.lengths[threadIdx.x];
  if (threadIdx.x != 0) return;
  plan.bytes = static_cast<std::uint32_t>(
      up_to_4(bytes_before_streams(numbers.type, numbers.chunk.count) + bytes + kSlack));
}

/// Measures chunks. A chunk spans several thread blocks; the one in which it begins does the work.
__global__ void measure_chunks(const Batch<LosslessSlice> batch) {
  __shared__ MeasureRoom room;
  const LosslessSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t first = first_of_block(slice);
  const Chunk chunk = Chunk::of(first, slice.message_type, slice.elements);
  if (chunk.first != first) return;
  ChunkPlan& plan = slice.plans[chunk.number];
  const Form form = choose_form(slice, chunk, room);
  if (threadIdx.x == 0) plan.form = form;
  if (form != Form::kRaw) {
    plan_streams(CodedNumbers::of(slice, chunk, form), room, plan);
  } else if (threadIdx.x == 0) {
    plan.bytes =
        static_cast<std::uint32_t>(up_to_4(chunk.count * number_bytes(slice.message_type)));
  }
}

/// Computes the chunks' offsets in the message, and writes its start. One thread block per slice.
__global__ void place_chunks(const Batch<LosslessSlice> batch) {
  const LosslessSlice& slice = batch.slices[blockIdx.x];
  const std::int64_t chunks = (slice.elements - 1) / chunk_elements(slice.message_type) + 1;
  std::int64_t before = kStartBytes;
  for (std::int64_t first = 0; first < chunks; first += kThreadsPerBlock) {
    const std::int64_t mine = first + threadIdx.x;
    std::uint64_t bytes = 0, total = 0;
    if (mine < chunks)
      bytes = static_cast<std::uint64_t>(kChunkStartBytes) + slice.plans[mine].bytes;
    const auto at = before + static_cast<std::int64_t>(sum_before(bytes, total));
    if (mine < chunks) slice.plans[mine].at = at;
    before += static_cast<std::int64_t>(total);
  }
  if (threadIdx.x != 0) return;
  Start start;
  start.elements = static_cast<std::uint32_t>(slice.elements);
  start.type = slice.message_type;
  start.bytes = before;
  *reinterpret_cast<Start*>(slice.message) = start;
  if (slice.message_bytes != nullptr) *slice.message_bytes = before;
}

__device__ inline void write_raw(const LosslessSlice& slice, const Chunk& chunk, std::byte* to) {
  const bool whole = slice.message_type == ValueType::kFloat32;
  for (std::int64_t i = threadIdx.x; i < chunk.count; i += kThreadsPerBlock) {
    const std::uint32_t bits = slice.bits(chunk.first + i);
    if (whole) {
      reinterpret_cast<std::uint32_t*>(to)[i] = bits;
    } else {
      reinterpret_cast<std::uint16_t*>(to)[i] = static_cast<std::uint16_t>(bits);
    }
  }
}

/// Writes the uncoded bits of the values.
__device__ inline void write_rest(const CodedNumbers& numbers, std::byte* to) {
  const std::int64_t count = numbers.chunk.count;
  const bool whole = numbers.type == ValueType::kFloat32;
  std::byte* const signed_rest = to + (whole ? 2 * count : 0);
  for (std::int64_t i = threadIdx.x; i < count; i += kThreadsPerBlock) {
    const std::uint32_t bits = numbers.bits(i);
    if (whole) reinterpret_cast<std::uint16_t*>(to)[i] = static_cast<std::uint16_t>(bits);
    signed_rest[i] = static_cast<std::byte>(signed_rest_of(numbers.type, bits));
  }
}

/// Writes this thread's exponents, starting at bit `bit` of `words`; the bits must be 0 before.
__device__ inline void write_run(const CodedNumbers& numbers, const std::uint8_t* lengths,
                                 const std::uint16_t* codes, std::uint32_t* words,
                                 std::int64_t bit) {
  const Run run = Run::of_thread(numbers.chunk.count);
  words += bit / 32;
  int used = static_cast<int>(bit % 32);
  std::uint64_t pending = 0;
  for (std::int64_t i = run.first; i < run.end; ++i) {
    const std::uint8_t symbol = numbers.exponent(i);
    pending |= std::uint64_t{codes[symbol]} << used;
    used += lengths[symbol];
    if (used < 32) continue;
    atomicOr(words++, static_cast<std::uint32_t>(pending));
    pending >>= 32;
    used -= 32;
  }
  if (pending != 0) atomicOr(words, static_cast<std::uint32_t>(pending));
}

/// Writes a coded chunk. `to` is the memory after its ChunkStart, which must be all zeros.
__device__ inline void write_coded(const CodedNumbers& numbers, const ChunkPlan& plan,
                                   std::byte* to) {
  __shared__ std::uint8_t lengths[kSymbols];
  __shared__ std::uint16_t codes[kSymbols];
  const int thread = threadIdx.x;
  lengths[thread] = plan.lengths[thread];
  if (thread < kLengthsBytes) {
    to[thread] =
        static_cast<std::byte>(plan.lengths[2 * thread] | plan.lengths[2 * thread + 1] << 4);
  }
  if (thread < kStreams) {
    reinterpret_cast<std::uint32_t*>(to + kLengthsBytes)[thread] = plan.stream_bytes[thread];
  }
  write_rest(numbers, to + kLengthsBytes + kSizesBytes);
  __syncthreads();
  if (thread == 0) find_codes(lengths, codes);
  __syncthreads();  // also because the rest, written above, may share a word with the streams
  const std::int64_t bit =
      8 * bytes_before_streams(numbers.type, numbers.chunk.count) + plan.first_bits[thread];
  write_run(numbers, lengths, codes, reinterpret_cast<std::uint32_t*>(to), bit);
}

/// Writes chunks, each in the thread block in which it begins.
__global__ void write_chunks(const Batch<LosslessSlice> batch) {
  const LosslessSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t first = first_of_block(slice);
  const Chunk chunk = Chunk::of(first, slice.message_type, slice.elements);
  if (chunk.first != first) return;
  const ChunkPlan& plan = slice.plans[chunk.number];
  std::byte* const begin = slice.message + plan.at;
  std::byte* const to = begin + kChunkStartBytes;
  for (std::int64_t word = threadIdx.x; word < plan.bytes / 4; word += kThreadsPerBlock) {
    reinterpret_cast<std::uint32_t*>(to)[word] = 0;
  }
  if (threadIdx.x == 0) {
    ChunkStart start;
    start.bytes = plan.bytes;
    start.form = plan.form;
    *reinterpret_cast<ChunkStart*>(begin) = start;
  }
  __syncthreads();
  if (plan.form == Form::kRaw) {
    write_raw(slice, chunk, to);
  } else {
    write_coded(CodedNumbers::of(slice, chunk, plan.form), plan, to);
  }
}

// ---- decoding ----

/// A chunk of a message, whose start find_chunks_of() has found valid.
struct FoundChunk {
  const std::byte* content;
  std::uint32_t bytes;
  Form form;
};

/// Result of the search for a message's chunks.
struct FoundMessage {
  ValueType type;
  bool sound;
};

/// One slice and one of its messages.
struct LosslessDecodeSlice {
  const std::byte* message;  ///< null for an item without messages, whose x is only divided
  std::int64_t message_bytes;
  DecodeMode mode;
  ValueType read_type, type;
  float own_divisor, sum_divisor;
  const void* read;  ///< input x with DecodeMode::kAdd; numbers of `read_type`
  void* values;      ///< output; numbers of `type`
  std::int64_t elements;
  FoundMessage* found;
  FoundChunk* chunks;
  std::uint8_t* exponents;  ///< exponents of the slice's elements
  std::uint32_t* spoiled;   ///< one per item; set if any of its messages is damaged
  std::int64_t first_block;
};

/// Fills slice.found and slice.chunks; false for a message that no encode wrote.
__device__ inline bool find_chunks_of(const LosslessDecodeSlice& slice) {
  if (slice.message_bytes < kStartBytes) return false;
  const Start& start = *reinterpret_cast<const Start*>(slice.message);
  if (!is_start(start, slice.elements)) return false;
  if (!has_length(start, slice.elements, slice.message_bytes)) return false;
  slice.found->type = start.type;
  std::int64_t at = kStartBytes;
  for (std::int64_t first = 0; first < slice.elements; first += chunk_elements(start.type)) {
    if (start.bytes - at < kChunkStartBytes) return false;
    const ChunkStart chunk = *reinterpret_cast<const ChunkStart*>(slice.message + at);
    at += kChunkStartBytes;
    if (chunk.bytes % 4 != 0 || static_cast<std::int64_t>(chunk.bytes) > start.bytes - at) {
      return false;
    }
    if (!is_known(chunk.form, start.type)) return false;
    const Chunk part = Chunk::of(first, start.type, slice.elements);
    const std::int64_t raw = up_to_4(part.count * number_bytes(start.type));
    if (chunk.form == Form::kRaw && static_cast<std::int64_t>(chunk.bytes) != raw) return false;
    slice.chunks[part.number] = {slice.message + at, chunk.bytes, chunk.form};
    at += chunk.bytes;
  }
  return at == start.bytes;
}

/// Finds the chunks of messages, with one thread per message, because each chunk's position depends
/// on the chunk before. One thread block per message.
__global__ void find_chunks(const Batch<LosslessDecodeSlice> batch) {
  const LosslessDecodeSlice& slice = batch.slices[blockIdx.x];
  if (threadIdx.x != 0 || slice.message == nullptr) return;
  const bool sound = find_chunks_of(slice);
  slice.found->sound = sound;
  if (!sound) atomicOr(slice.spoiled, 1u);
}

/// Shared memory of a thread block that decodes a chunk.
struct DecodeRoom {
  std::uint8_t lengths[kSymbols];
  std::uint16_t codes[kSymbols];
  std::uint16_t table[kTableSize];  ///< by the next bits: symbol | code length << 8
};

/// Reads the code lengths and builds the table; returns false, on all threads, unless they form a
/// complete code.
__device__ inline bool read_code(const std::byte* content, DecodeRoom& room) {
  const int symbol = threadIdx.x;
  const auto pair = static_cast<std::uint8_t>(content[symbol / 2]);
  const int length = symbol % 2 == 0 ? pair & 15 : pair >> 4;
  room.lengths[symbol] = static_cast<std::uint8_t>(length);
  std::uint64_t used = 0;
  sum_before(static_cast<std::uint64_t>(used_up_by(length)), used);
  if (__syncthreads_or(length > kMaxCodeBits ? 1 : 0) != 0 || used != kTableSize) return false;
  if (symbol == 0) find_codes(room.lengths, room.codes);
  __syncthreads();
  for (int at = room.codes[symbol]; length > 0 && at < kTableSize; at += 1 << length) {
    room.table[at] = static_cast<std::uint16_t>(symbol | length << 8);
  }
  __syncthreads();
  return true;
}

/// Decodes one stream: bits `bit` to `end_bit` of `words`. Returns false if no encode wrote it.
/// Requires kSlack bytes past the stream.
__device__ inline bool decode_stream(const std::uint32_t* words, std::int64_t bit,
                                     std::int64_t end_bit, const std::uint16_t* table,
                                     std::uint8_t* to, std::int64_t count) {
  std::int64_t word = -1;  // index of the word at the start of `bits`
  std::uint64_t bits = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (bit >= end_bit) return false;
    if (bit / 32 != word) {
      word = bit / 32;
      bits = words[word] | std::uint64_t{words[word + 1]} << 32;
    }
    const std::uint32_t entry = table[bits >> (bit % 32) & (kTableSize - 1)];
    to[i] = static_cast<std::uint8_t>(entry);
    bit += entry >> 8;
  }
  // The remaining bits, fewer than 8, pad the last byte.
  return bit <= end_bit && end_bit - bit < 8;
}

/// Decodes the four streams, each with a thread of a different warp. Returns false on the thread of
/// a damaged stream.
__device__ inline bool decode_streams(const FoundChunk& chunk, std::int64_t before,
                                      std::int64_t count, const std::uint16_t* table,
                                      std::uint8_t* exponents) {
  const int stream = threadIdx.x / kWarpThreads;
  if (threadIdx.x % kWarpThreads != 0 || stream >= kStreams) return true;
  const auto* const sizes = reinterpret_cast<const std::uint32_t*>(chunk.content + kLengthsBytes);
  std::int64_t begin = before;
  for (int other = 0; other < stream; ++other) begin += sizes[other];
  const std::int64_t first = first_of_stream(stream, count);
  return decode_stream(reinterpret_cast<const std::uint32_t*>(chunk.content), 8 * begin,
                       8 * (begin + sizes[stream]), table, exponents + first,
                       first_of_stream(stream + 1, count) - first);
}

/// Decodes a chunk with the whole thread block; returns false, on at least one thread, if it is
/// damaged.
__device__ inline bool decode_chunk(const FoundChunk& chunk, ValueType type, std::int64_t count,
                                    std::uint8_t* exponents) {
  __shared__ DecodeRoom room;
  const std::int64_t before = bytes_before_streams(type, count);
  if (static_cast<std::int64_t>(chunk.bytes) < before + kSlack) return false;
  const auto* const sizes = reinterpret_cast<const std::uint32_t*>(chunk.content + kLengthsBytes);
  std::int64_t streams = 0;
  for (int stream = 0; stream < kStreams; ++stream) streams += sizes[stream];
  if (up_to_4(before + streams + kSlack) != chunk.bytes) return false;
  if (!read_code(chunk.content, room)) return false;
  return decode_streams(chunk, before, count, room.table, exponents);
}

/// Decodes chunks, each in the thread block in which it begins.
__global__ void decode_chunks(const Batch<LosslessDecodeSlice> batch) {
  const LosslessDecodeSlice& slice = batch.slice_of(blockIdx.x);
  if (slice.message == nullptr || !slice.found->sound) return;
  const std::int64_t first = first_of_block(slice);
  const ValueType type = slice.found->type;
  const Chunk chunk = Chunk::of(first, type, slice.elements);
  if (chunk.first != first) return;
  const FoundChunk& found = slice.chunks[chunk.number];
  if (found.form == Form::kRaw) return;
  const bool sound =
      decode_chunk(found, coded_type(found.form, type), chunk.count, slice.exponents + first);
  if (!sound) atomicOr(slice.spoiled, 1u);
}

/// Number `i` of a chunk, as bits of the message's type.
__device__ inline std::uint32_t bits_of(const FoundChunk& chunk, ValueType type, std::int64_t count,
                                        std::int64_t i, const std::uint8_t* exponents) {
  if (chunk.form == Form::kRaw) {
    if (type == ValueType::kFloat32)
      return reinterpret_cast<const std::uint32_t*>(chunk.content)[i];
    return reinterpret_cast<const std::uint16_t*>(chunk.content)[i];
  }
  const std::byte* const rest = chunk.content + kLengthsBytes + kSizesBytes;
  const auto byte = [rest](std::int64_t at) { return static_cast<std::uint32_t>(rest[at]); };
  const ValueType coded = coded_type(chunk.form, type);
  if (coded == ValueType::kFloat32) {
    return float_of(exponents[i], byte(2 * count + i),
                    reinterpret_cast<const std::uint16_t*>(rest)[i]);
  }
  const std::uint16_t code = half_of(coded, exponents[i], byte(i));
  return coded == type ? code : widened(coded, code);
}

/// Value of a number of `type` with these bits, as fp32.
__device__ inline float value_of(std::uint32_t bits, ValueType type) {
  if (type == ValueType::kFloat32) return as_float(bits);
  return as_float(widened(type, static_cast<std::uint16_t>(bits)));
}

/// Stores bits of the slice's type.
__device__ inline void store_bits(const LosslessDecodeSlice& slice, std::int64_t i,
                                  std::uint32_t bits) {
  if (slice.type == ValueType::kFloat32) {
    static_cast<std::uint32_t*>(slice.values)[i] = bits;
  } else {
    static_cast<std::uint16_t*>(slice.values)[i] = static_cast<std::uint16_t>(bits);
  }
}

__global__ void put_values(const Batch<LosslessDecodeSlice> batch) {
  const LosslessDecodeSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t first = first_of_block(slice);
  const std::int64_t end = min(first + kElementsPerBlock, slice.elements);
  const bool adds = slice.mode == DecodeMode::kAdd, spoiled = *slice.spoiled != 0;
  const bool has_message = slice.message != nullptr && !spoiled;
  const ValueType type = has_message ? slice.found->type : ValueType::kFloat32;
  const Chunk chunk = Chunk::of(first, type, slice.elements);
  FoundChunk found = {};
  if (has_message) found = slice.chunks[chunk.number];
  const Divisor own = Divisor::of(slice.own_divisor), sum = Divisor::of(slice.sum_divisor);
  for (std::int64_t i = first + threadIdx.x; i < end; i += kThreadsPerBlock) {
    if (spoiled) {
      store_value(slice.values, slice.type, i, not_a_number());
      continue;
    }
    std::uint32_t bits = 0;
    if (has_message) {
      bits = bits_of(found, type, chunk.count, i - chunk.first, slice.exponents + chunk.first);
    }
    if (!adds && type == slice.type) {
      store_bits(slice, i, bits);
      continue;
    }
    float value = has_message ? value_of(bits, type) : 0;
    if (adds) {
      const float x = own(load_value(slice.read, slice.read_type, i));
      value = sum(has_message ? x + value : x);
    }
    store_value(slice.values, slice.type, i, value);
  }
}

}  // namespace hipress::kernels::lossless
