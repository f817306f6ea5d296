// Packed messages of sparsifiers on a GPU (format: packed.hpp). The sparsifier writes a plain
// message into temporary memory, where it is packed; received messages are unpacked there and
// decoded.

#include <vector>

#include "kernels/codec/item_checks.hpp"
#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/temporary.hpp"
#include "kernels/cuda/threads.cuh"
#include "kernels/frames/typed_values.hpp"
#include "kernels/sparse/packed.hpp"

namespace hipress::kernels::sparse {

namespace {

/// The arrays of a sparsifier's plain message.
struct PlainEntries {
  std::uint32_t* indices;
  float* values;

  __device__ static PlainEntries of(std::byte* message, std::int64_t entries) {
    std::byte* const arrays = message + kStartBytes;
    return {reinterpret_cast<std::uint32_t*>(arrays),
            reinterpret_cast<float*>(arrays + sparsifier_array_bytes(entries))};
  }
};

// ---- packing ----

struct PackSlice {
  std::byte* plain;
  std::byte* message;
  float* waiting;  ///< array to which rounding errors are added; null if none
  std::int64_t* message_bytes;
  Layout parts;
  Packing packing;
  std::int64_t elements;  ///< units of work for thread blocks: entries, at least 1
  std::int64_t first_block;

  __device__ std::uint64_t* words_at(std::int64_t place) const {
    return reinterpret_cast<std::uint64_t*>(message + place);
  }
};

/// Clears messages, because many threads set their bits.
__global__ void clear_messages(const Batch<PackSlice> batch) {
  const PackSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t blocks = (slice.elements + kElementsPerBlock - 1) / kElementsPerBlock;
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) - slice.first_block;
  auto* const words = reinterpret_cast<std::uint32_t*>(slice.message);
  for (std::int64_t i = block * kThreadsPerBlock + threadIdx.x; i < slice.parts.end / 4;
       i += blocks * kThreadsPerBlock) {
    words[i] = 0;
  }
}

/// Sets the bits of entry i's index.
__device__ void put_index(const PackSlice& slice, std::int64_t i, std::uint32_t index) {
  const int l = slice.parts.lower_bits;
  const std::int64_t upper = static_cast<std::int64_t>(index >> l) + i;
  or_atomically(slice.words_at(slice.parts.upper)[upper / kWordBits],
                std::uint64_t{1} << (upper % kWordBits));
  if (l == 0) return;
  const std::uint64_t low = index & ((std::uint32_t{1} << l) - 1);
  const std::int64_t bit = i * l;
  const int shift = static_cast<int>(bit % kWordBits);
  std::uint64_t* const words = slice.words_at(kStartBytes) + bit / kWordBits;
  or_atomically(words[0], low << shift);
  if (shift + l > kWordBits) or_atomically(words[1], low >> (kWordBits - shift));
}

/// Writes a value. With Packing::kAll it is clamped to fp16's range and rounded; the error of both
/// is added to the waiting array.
__device__ void put_value(const PackSlice& slice, std::int64_t i, std::uint32_t index,
                          float value) {
  std::byte* const values = slice.message + slice.parts.values;
  if (slice.packing != Packing::kAll) {
    store_value(values, ValueType::kFloat32, i, value);
    return;
  }
  store_value(values, ValueType::kFloat16, i, larger(-kMaxFp16, smaller(kMaxFp16, value)));
  if (slice.waiting == nullptr) return;
  slice.waiting[index] += value - load_value(values, ValueType::kFloat16, i);
}

/// Packs all entries; each thread takes one at a time.
__global__ void pack_entries(const Batch<PackSlice> batch) {
  const PackSlice& slice = batch.slice_of(blockIdx.x);
  SparsifierHeader start = *reinterpret_cast<const SparsifierHeader*>(slice.plain);
  const PlainEntries entries = PlainEntries::of(slice.plain, slice.parts.entries);
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) - slice.first_block) * kElementsPerBlock;
  const std::int64_t end = min(first + kElementsPerBlock, static_cast<std::int64_t>(start.count));
  for (std::int64_t i = first + threadIdx.x; i < end; i += kThreadsPerBlock) {
    const std::uint32_t index = entries.indices[i];
    put_index(slice, i, index);
    put_value(slice, i, index, entries.values[i]);
  }
  if (first != 0 || threadIdx.x != 0) return;
  start.zero = static_cast<std::uint32_t>(slice.packing);
  *reinterpret_cast<SparsifierHeader*>(slice.message) = start;
  if (slice.message_bytes != nullptr) *slice.message_bytes = slice.parts.end;
}

// ---- unpacking ----

/// Units of work per word of the upper parts, such that each thread of a block has one word.
constexpr std::int64_t kElementsPerWord = kElementsPerBlock / kThreadsPerBlock;

struct UnpackSlice {
  const std::byte* message;
  std::byte* plain;
  std::uint64_t* before;  ///< per thread block: its count of entries; later the count before it
  Layout parts;
  Packing packing;
  std::int64_t elements;  ///< units of work for thread blocks: upper words × kElementsPerWord
  std::int64_t first_block;

  __device__ const SparsifierHeader& start() const {
    return *reinterpret_cast<const SparsifierHeader*>(message);
  }
  __device__ SparsifierHeader& plain_start() const {
    return *reinterpret_cast<SparsifierHeader*>(plain);
  }
  __device__ std::int64_t block() const {
    return static_cast<std::int64_t>(blockIdx.x) - first_block;
  }
  /// Index of this thread's word of the upper parts. word() is the word, 0 past the last one.
  __device__ std::int64_t number() const { return block() * kThreadsPerBlock + threadIdx.x; }
  __device__ std::uint64_t word() const {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(message + parts.upper);
    return number() < parts.upper_words() ? words[number()] : 0;
  }
  __device__ std::uint64_t lower(std::int64_t i) const {
    const int l = parts.lower_bits;
    if (l == 0) return 0;
    const auto* const words =
        reinterpret_cast<const std::uint64_t*>(message + kStartBytes) + i * l / kWordBits;
    const int shift = static_cast<int>(i * l % kWordBits);
    std::uint64_t bits = words[0] >> shift;
    if (shift + l > kWordBits) bits |= words[1] << (kWordBits - shift);
    return bits & ((std::uint64_t{1} << l) - 1);
  }
};

/// Value of header.planes that makes a sparsifier refuse a plain message; valid ones have 0.
constexpr std::uint8_t kDamaged = 0xff;

/// Counts the entries in each thread block's words of the upper parts: one per set bit.
__global__ void count_entries(const Batch<UnpackSlice> batch) {
  const UnpackSlice& slice = batch.slice_of(blockIdx.x);
  std::uint64_t total = 0;
  sum_before(static_cast<std::uint64_t>(__popcll(slice.word())), total);
  if (threadIdx.x == 0) slice.before[slice.block()] = total;
}

/// One thread block per message: computes the number of entries before each thread block, and
/// writes the start of the plain message.
__global__ void place_entries(const Batch<UnpackSlice> batch) {
  const UnpackSlice& slice = batch.slices[blockIdx.x];
  const std::int64_t blocks = (slice.elements + kElementsPerBlock - 1) / kElementsPerBlock;
  std::uint64_t before = 0;
  for (std::int64_t first = 0; first < blocks; first += kThreadsPerBlock) {
    const std::int64_t mine = first + threadIdx.x;
    std::uint64_t total = 0;
    const std::uint64_t to = before + sum_before(mine < blocks ? slice.before[mine] : 0, total);
    if (mine < blocks) slice.before[mine] = to;
    before += total;
  }
  if (threadIdx.x != 0) return;
  SparsifierHeader start = slice.start();
  const bool sound = start.zero == static_cast<std::uint32_t>(slice.packing) &&
                     static_cast<std::int64_t>(start.count) <= slice.parts.entries &&
                     before == start.count;
  start.zero = 0;
  if (!sound) start.header.planes = kDamaged;
  slice.plain_start() = start;
}

/// Writes indices and values; the sparsifier checks them.
__global__ void unpack_entries(const Batch<UnpackSlice> batch) {
  const UnpackSlice& slice = batch.slice_of(blockIdx.x);
  std::uint64_t word = slice.word(), total = 0;
  std::uint64_t found =
      slice.before[slice.block()] + sum_before(static_cast<std::uint64_t>(__popcll(word)), total);
  // An invalid message may have more entries than there is room for.
  const auto count = static_cast<std::int64_t>(slice.start().count);
  const std::int64_t room = min(count, slice.parts.entries);
  const ValueType type = slice.packing == Packing::kAll ? ValueType::kFloat16 : ValueType::kFloat32;
  const PlainEntries entries = PlainEntries::of(slice.plain, slice.parts.entries);
  for (; word != 0 && static_cast<std::int64_t>(found) < room; word &= word - 1, ++found) {
    const auto i = static_cast<std::int64_t>(found);
    const std::int64_t upper =
        slice.number() * kWordBits + __ffsll(static_cast<long long>(word)) - 1 - i;
    const std::uint64_t index =
        static_cast<std::uint64_t>(upper) << slice.parts.lower_bits | slice.lower(i);
    if (index > 0xffffffffu) slice.plain_start().header.planes = kDamaged;
    entries.indices[i] = static_cast<std::uint32_t>(index);
    entries.values[i] = load_value(slice.message + slice.parts.values, type, i);
  }
}

class CudaPackedCodec : public PackedCodec {
 public:
  using PackedCodec::PackedCodec;

  void encode(std::span<const EncodeItem> items, void* stream) const override {
    check_encodes(items);
    const auto on = static_cast<cudaStream_t>(stream);
    std::vector<EncodeItem> plain;
    std::vector<std::size_t> places;
    MemoryLayout memory_layout;
    for (const EncodeItem& item : items) {
      if (item.elements == 0) continue;
      plain.push_back(item);
      plain.back().message_bytes = nullptr;
      places.push_back(memory_layout.add<std::byte>(sparsifier_->encoded_bytes(item.elements)));
    }
    if (!plain.empty()) {
      const StreamMemory memory(memory_layout.bytes(), on);
      for (std::size_t i = 0; i < plain.size(); ++i) {
        plain[i].message = memory.at<std::byte>(places[i]);
      }
      sparsifier_->encode(plain, stream);
      pack(items, plain, on);
    }
    for (const EncodeItem& item : items) {
      if (item.elements == 0) encode_nothing(item, on);
    }
  }

  void decode(std::span<const DecodeItem> items, void* stream) const override {
    check_decodes(items, "packed entries");
    const auto on = static_cast<cudaStream_t>(stream);
    std::vector<UnpackSlice> slices;
    std::vector<std::size_t> plain, before;
    MemoryLayout memory_layout;
    for (const DecodeItem& item : items) {
      const Layout parts = layout(item.elements);
      for (std::size_t m = 0; item.elements > 0 && m < item.messages.size(); ++m) {
        if (item.message_bytes[m] != parts.end) continue;
        const std::int64_t words = parts.upper_words();
        slices.push_back({.message = item.messages[m],
                          .plain = nullptr,
                          .before = nullptr,
                          .parts = parts,
                          .packing = packing_,
                          .elements = words * kElementsPerWord,
                          .first_block = 0});
        plain.push_back(memory_layout.add<std::byte>(sparsifier_->encoded_bytes(item.elements)));
        before.push_back(memory_layout.add<std::uint64_t>((words - 1) / kThreadsPerBlock + 1));
      }
    }
    const StreamMemory memory(std::max<std::size_t>(1, memory_layout.bytes()), on);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      slices[i].plain = memory.at<std::byte>(plain[i]);
      slices[i].before = memory.at<std::uint64_t>(before[i]);
    }
    for_each_batch(std::span<const UnpackSlice>(slices), [&](const Batch<UnpackSlice>& batch) {
      launch(count_entries, batch.blocks, batch, on);
      launch(place_entries, batch.count, batch, on);
      launch(unpack_entries, batch.blocks, batch, on);
    });
    decode_plain(items, slices, stream);
  }

 private:
  void pack(std::span<const EncodeItem> items, std::span<const EncodeItem> plain,
            cudaStream_t on) const {
    std::vector<PackSlice> slices;
    std::size_t next = 0;
    for (const EncodeItem& item : items) {
      if (item.elements == 0) continue;
      const Layout parts = layout(item.elements);
      slices.push_back({.plain = plain[next++].message,
                        .message = item.message,
                        .waiting = waiting(item.state),
                        .message_bytes = item.message_bytes,
                        .parts = parts,
                        .packing = packing_,
                        .elements = std::max<std::int64_t>(1, parts.entries),
                        .first_block = 0});
    }
    for_each_batch(std::span<const PackSlice>(slices), [&](const Batch<PackSlice>& batch) {
      launch(clear_messages, batch.blocks, batch, on);
      launch(pack_entries, batch.blocks, batch, on);
    });
  }

  /// Decodes the unpacked messages. Length -1 marks a message of the wrong length, and gives NaN.
  void decode_plain(std::span<const DecodeItem> items, std::span<const UnpackSlice> unpacked,
                    void* stream) const {
    std::size_t messages = 0, next = 0;
    for (const DecodeItem& item : items) messages += item.messages.size();
    std::vector<const std::byte*> all;
    std::vector<std::int64_t> lengths;
    all.reserve(messages);  // items point into it
    lengths.reserve(messages);
    std::vector<DecodeItem> plain(items.begin(), items.end());
    for (DecodeItem& item : plain) {
      const std::int64_t expected = layout(item.elements).end;
      for (const std::int64_t length : item.message_bytes) {
        const bool is_unpacked = item.elements > 0 && length == expected;
        all.push_back(is_unpacked ? unpacked[next++].plain : nullptr);
        lengths.push_back(is_unpacked ? sparsifier_->encoded_bytes(item.elements) : -1);
      }
      item.messages = std::span(all).last(item.messages.size());
      item.message_bytes = std::span(lengths).last(item.message_bytes.size());
    }
    sparsifier_->decode(plain, stream);
  }
};

}  // namespace

std::unique_ptr<Codec> make_cuda_packed(std::unique_ptr<Codec> sparsifier, Packing packing,
                                        int waiting_array) {
  if (packing == Packing::kNone) return sparsifier;
  return std::make_unique<CudaPackedCodec>(std::move(sparsifier), packing, waiting_array);
}

}  // namespace hipress::kernels::sparse
