// Launches the kernels of sparsifiers.

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "kernels/codec/item_checks.hpp"
#include "kernels/cuda/algorithm.hpp"
#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/codec.hpp"
#include "kernels/cuda/decode.hpp"
#include "kernels/cuda/sparsifier_kernels.hpp"
#include "kernels/frames/sparsifier.hpp"

namespace hipress::kernels {

namespace {

/// Maximal number of thread blocks that share a slice's entries: enough to fill a GPU.
constexpr std::int64_t kMaxShares = 264;

struct Places {
  std::size_t work, tiles, blocks, listed, listed_at;
};

class CudaSparsifier : public CudaAlgorithm {
 public:
  CudaSparsifier(const CompiledAlgorithm& program, const CudaSparsifierKernels& kernels,
                 const double* values)
      : CudaAlgorithm(program, values), kernels_(kernels) {}

  void encode(std::span<const EncodeItem> items, void* stream) const override {
    check_encodes(items);
    const auto on = static_cast<cudaStream_t>(stream);
    std::vector<SparsifierSlice> slices;
    for (const EncodeItem& item : items) {
      if (item.elements > kMaxSparsifierElements) {
        throw std::invalid_argument("a slice of 2^32 elements or more; cut it into partitions");
      }
      if (item.elements <= 0) {
        encode_nothing(item, on);
        continue;
      }
      slices.push_back(slice_of(item));
    }
    if (slices.empty()) return;
    std::vector<Places> places(slices.size());
    MemoryLayout layout;
    for (Places& place : places) place.work = layout.add<SparsifierWork>(1);
    const std::size_t work_bytes = layout.bytes();
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const SparsifierSlice& slice = slices[i];
      places[i].tiles = layout.add<SparsifierTile>(parts(slice.elements, kTileElements));
      places[i].blocks = layout.add<SparsifierBlock>(parts(slice.elements, kElementsPerBlock));
      places[i].listed = layout.add<float>(slice.capacity);
      places[i].listed_at = layout.add<std::uint32_t>(slice.capacity);
    }
    const StreamMemory memory(layout.bytes(), on);
    check_cuda(cudaMemsetAsync(memory.data(), 0, work_bytes, on), "clearing temporary memory");
    for (std::size_t i = 0; i < slices.size(); ++i) {
      slices[i].work = memory.at<SparsifierWork>(places[i].work);
      slices[i].tiles = memory.at<SparsifierTile>(places[i].tiles);
      slices[i].blocks = memory.at<SparsifierBlock>(places[i].blocks);
      slices[i].listed = memory.at<float>(places[i].listed);
      slices[i].listed_at = memory.at<std::uint32_t>(places[i].listed_at);
    }
    for_each_batch(std::span<const SparsifierSlice>(slices),
                   [&](const Batch<SparsifierSlice>& batch) { encode_batch(batch, on); });
  }

  void decode(std::span<const DecodeItem> items, void* stream) const override {
    check_decodes(items, program_.name);
    const auto on = static_cast<cudaStream_t>(stream);
    std::size_t most_parts = 0;
    MemoryLayout layout;
    std::vector<std::size_t> spoiled, sums;
    for (const DecodeItem& item : items) {
      most_parts = std::max(most_parts, parts_of(item));
      spoiled.push_back(layout.add<std::uint32_t>(1));
    }
    const std::size_t spoiled_bytes = layout.bytes();
    for (const DecodeItem& item : items) {
      sums.push_back(layout.add<float>(waits_in_fp32(item) ? item.elements : 0));
    }
    if (items.empty()) return;
    const StreamMemory memory(layout.bytes(), on);
    check_cuda(cudaMemsetAsync(memory.data(), 0, spoiled_bytes, on), "clearing temporary memory");

    std::vector<std::vector<SparsifierDecodeSlice>> rounds(most_parts);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const DecodeItem& item = items[i];
      if (item.elements <= 0) continue;
      void* const between = waits_in_fp32(item) ? memory.at<float>(sums[i]) : item.values;
      for (std::size_t part = 0; part < parts_of(item); ++part) {
        SparsifierDecodeSlice slice = {
            part_of(item, part, encoded_bytes(item.elements), between, ValueType::kFloat32),
            memory.at<std::uint32_t>(spoiled[i])};
        rounds[part].push_back(slice);
      }
    }
    // All messages of a slice are checked before any is used.
    for (const auto& slices : rounds) {
      for_each_batch(std::span<const SparsifierDecodeSlice>(slices),
                     [&](const Batch<SparsifierDecodeSlice>& batch) {
                       const int shares = shares_of(batch, [&](const SparsifierDecodeSlice& slice) {
                         return entries_at_most(slice.elements);
                       });
                       launch(kernels_.check, std::int64_t{batch.count} * shares, on, batch,
                              shares);
                     });
    }
    for (const auto& slices : rounds) {
      for_each_batch(std::span<const SparsifierDecodeSlice>(slices),
                     [&](const Batch<SparsifierDecodeSlice>& batch) {
                       launch(kernels_.decode, batch.blocks, on, batch);
                     });
    }
  }

 private:
  static std::int64_t parts(std::int64_t elements, std::int64_t each) {
    return (elements + each - 1) / each;
  }

  /// Number of entries that a message has room for; up to three more than are ever sent.
  std::int64_t entries_at_most(std::int64_t elements) const {
    return (encoded_bytes(elements) - static_cast<std::int64_t>(sizeof(SparsifierHeader))) / 8;
  }

  /// True for a 16-bit slice in several launches: its sums stay in fp32, to be rounded only once.
  static bool waits_in_fp32(const DecodeItem& item) {
    return item.elements > 0 && item.type != ValueType::kFloat32 && parts_of(item) > 1;
  }

  SparsifierSlice slice_of(const EncodeItem& item) const {
    SparsifierSlice slice = {};
    slice.values = item.values;
    slice.elements = item.elements;
    slice.type = item.type;
    slice.states = program_.state_arrays > 0 ? item.state.data : nullptr;
    slice.stride = item.state.stride;
    slice.rule = ValueRule::of(item);
    slice.rule.adds_residual = slice.states != nullptr && program_.error_feedback;
    slice.message = item.message;
    slice.message_bytes = item.message_bytes;
    const SelectionPlan plan = SelectionPlan::of(item.elements, entries_at_most(item.elements));
    slice.sample_rank = plan.sample_rank;
    slice.capacity = plan.sample_rank > 0 ? plan.capacity : 0;
    return slice;
  }

  /// Number of thread blocks per slice of a batch that share `amount(slice)` units of work.
  template <class Slice, class Amount>
  static int shares_of(const Batch<Slice>& batch, const Amount& amount) {
    std::int64_t most = 1;
    for (int i = 0; i < batch.count; ++i) {
      most = std::max(most, parts(amount(batch.slices[i]), kElementsPerBlock));
    }
    return static_cast<int>(std::min(most, kMaxShares));
  }

  void encode_batch(const Batch<SparsifierSlice>& batch, cudaStream_t on) const {
    const SparsifierSlice* const end = batch.slices + batch.count;
    const auto any = [&](const auto& test) { return std::any_of(batch.slices, end, test); };
    if (any([](const SparsifierSlice& slice) { return slice.states != nullptr; })) {
      launch(kernels_.look, batch.blocks, on, batch);
    }
    if (any([](const SparsifierSlice& slice) { return slice.sample_rank > 0; })) {
      launch(kernels_.sample, batch.count, on, batch);
    }
    launch(kernels_.collect, batch.blocks, on, batch);
    const int shares =
        shares_of(batch, [](const SparsifierSlice& slice) { return slice.elements; });
    for (int digit = 0; digit < kKeyDigits; ++digit) {
      launch(kernels_.count_digits, std::int64_t{batch.count} * shares, on, batch, digit, shares);
      launch(kernels_.conclude_digit, batch.count, on, batch, digit);
    }
    launch(kernels_.tally, batch.blocks, on, batch);
    launch(kernels_.place, batch.count, on, batch);
    launch(kernels_.write, batch.blocks, on, batch);
  }

  const CudaSparsifierKernels& kernels_;
};

}  // namespace

std::unique_ptr<Codec> make_cuda_sparsifier(const CompiledAlgorithm& program,
                                            const CudaSparsifierKernels& kernels,
                                            const double* values) {
  return std::make_unique<CudaSparsifier>(program, kernels, values);
}

}  // namespace hipress::kernels
