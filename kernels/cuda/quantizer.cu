// Launches the kernels of quantisers.

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "kernels/codec/item_checks.hpp"
#include "kernels/cuda/algorithm.hpp"
#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/codec.hpp"
#include "kernels/cuda/decode.hpp"
#include "kernels/cuda/quantizer_kernels.hpp"

namespace hipress::kernels {

namespace {

class CudaQuantizer : public CudaAlgorithm {
 public:
  CudaQuantizer(const CompiledAlgorithm& program, const CudaQuantizerKernels& kernels,
                const double* values)
      : CudaAlgorithm(program, values), kernels_(kernels) {}

  void encode(std::span<const EncodeItem> items, void* stream) const override {
    check_encodes(items);
    // Slices with different types or residual treatments need different kernels.
    std::map<std::pair<ValueType, CudaFeedback>, std::vector<EncodeSlice>> groups;
    std::int64_t tiles = 0, number = 0;
    const auto on = static_cast<cudaStream_t>(stream);
    for (const EncodeItem& item : items) {
      if (item.elements <= 0) {
        encode_nothing(item, on);
        continue;
      }
      EncodeSlice slice = slice_of(item);
      slice.first_tile = tiles;
      slice.number = number++;
      tiles += (item.elements + kTileElements - 1) / kTileElements;
      groups[{slice.type, feedback_of(slice)}].push_back(slice);
    }
    if (tiles == 0) return;
    std::size_t tile_bytes = 0;
    for (const CudaPassKernels& pass : kernels_.passes) {
      tile_bytes = std::max(tile_bytes, pass.tile_result_bytes);
    }
    const StreamMemory tile_results(static_cast<std::size_t>(tiles) * tile_bytes, on);
    const StreamMemory slice_results(static_cast<std::size_t>(number) * kernels_.slice_result_bytes,
                                     on);
    for (const auto& group : groups) {
      const ValueType type = group.first.first;
      const CudaFeedback feedback = group.first.second;
      const std::span<const EncodeSlice> slices = group.second;
      for_each_batch(slices, [&](const Batch<EncodeSlice>& batch) {
        encode_batch(batch, type, feedback, tile_results.data(), slice_results.data(), on);
      });
    }
  }

  void decode(std::span<const DecodeItem> items, void* stream) const override {
    check_decodes(items, program_.name);
    const auto on = static_cast<cudaStream_t>(stream);
    decode_in_parts(*this, items, on, [&](const Batch<DecodeSlice>& batch) {
      launch(kernels_.decode, batch.blocks, on, batch);
    });
  }

  void settle(const State& state, std::int64_t elements, void* stream) const override {
    if (state.data == nullptr || state.deferred == nullptr || elements <= 0) return;
    if (kernels_.settle == nullptr) return;  // the algorithm never defers
    EncodeSlice slice = {};
    slice.elements = elements;
    slice.residual = state.data;
    slice.deferred = state.deferred;
    Batch<EncodeSlice> batch;
    batch.add(slice);
    const auto on = static_cast<cudaStream_t>(stream);
    launch(kernels_.settle, batch.blocks, on, batch);
    check_cuda(cudaMemsetAsync(&state.deferred->owed, 0, sizeof state.deferred->owed, on),
               "settling a residual");
  }

 private:
  EncodeSlice slice_of(const EncodeItem& item) const {
    EncodeSlice slice = {};
    slice.values = item.values;
    slice.type = item.type;
    slice.elements = item.elements;
    slice.residual = program_.error_feedback ? item.state.data : nullptr;
    if (slice.residual != nullptr && program_.deferrable) slice.deferred = item.state.deferred;
    slice.rule = ValueRule::of(item);
    slice.rule.adds_residual = slice.residual != nullptr;
    slice.message = item.message;
    slice.planes = reinterpret_cast<std::uint32_t*>(item.message + program_.planes_offset);
    slice.draws = draw_stream(item.key, item.elements);
    slice.message_bytes = item.message_bytes;
    return slice;
  }

  static CudaFeedback feedback_of(const EncodeSlice& slice) {
    return slice.residual == nullptr   ? CudaFeedback::kNone
           : slice.deferred == nullptr ? CudaFeedback::kAtOnce
                                       : CudaFeedback::kDeferred;
  }

  void encode_batch(const Batch<EncodeSlice>& batch, ValueType value_type, CudaFeedback feedback,
                    void* tile_results, void* slice_results, cudaStream_t stream) const {
    const int type = static_cast<int>(value_type);
    for (int p = 0; p < kernels_.pass_count; ++p) {
      const CudaPassKernels& pass = kernels_.passes[p];
      launch(pass.measure[type][static_cast<int>(feedback)], batch.blocks, stream, batch,
             tile_results, slice_results);
      launch(pass.conclude, batch.count, stream, batch, tile_results, slice_results);
    }
    const bool coded =
        feedback != CudaFeedback::kAtOnce && kernels_.codes_after < kernels_.pass_count;
    launch(coded ? kernels_.put_back : kernels_.encode[type], batch.blocks, stream, batch,
           slice_results);
  }

  const CudaQuantizerKernels& kernels_;
};

}  // namespace

std::unique_ptr<Codec> make_cuda_quantizer(const CompiledAlgorithm& program,
                                           const CudaQuantizerKernels& kernels,
                                           const double* values) {
  return std::make_unique<CudaQuantizer>(program, kernels, values);
}

}  // namespace hipress::kernels
