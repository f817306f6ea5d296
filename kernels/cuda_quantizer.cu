// Launches the kernels of quantisers.

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/algorithm_codec.hpp"
#include "kernels/cuda_batch.hpp"
#include "kernels/cuda_codec.hpp"
#include "kernels/cuda_quantizer_kernels.hpp"

namespace hipress::kernels {

namespace {

/// Temporary memory on a stream, given back to the stream's pool when it has been used there.
class StreamMemory {
 public:
  StreamMemory(std::size_t bytes, cudaStream_t stream) : stream_(stream) {
    check_cuda(cudaMallocAsync(&data_, bytes, stream), "allocating temporary memory");
  }
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;
  ~StreamMemory() { cudaFreeAsync(data_, stream_); }
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  cudaStream_t stream_;
};

class CudaQuantizer : public AlgorithmCodec {
 public:
  CudaQuantizer(const CompiledAlgorithm& program, const CudaQuantizerKernels& kernels,
                const double* values)
      : AlgorithmCodec(program, values), kernels_(kernels) {}

  void encode(std::span<const EncodeItem> items, void* stream) const override {
    // Slices that treat their residuals differently take different kernels.
    std::vector<EncodeSlice> slices[3];
    std::int64_t tiles = 0, number = 0;
    for (const EncodeItem& item : items) {
      if (item.elements <= 0) continue;
      EncodeSlice slice = slice_of(item);
      slice.first_tile = tiles;
      slice.number = number++;
      tiles += (item.elements + kTileElements - 1) / kTileElements;
      slices[static_cast<int>(feedback_of(slice))].push_back(slice);
    }
    if (tiles == 0) return;
    const auto on = static_cast<cudaStream_t>(stream);
    std::size_t tile_bytes = 0;
    for (const CudaPassKernels& pass : kernels_.passes) {
      tile_bytes = std::max(tile_bytes, pass.tile_result_bytes);
    }
    const StreamMemory tile_results(static_cast<std::size_t>(tiles) * tile_bytes, on);
    const StreamMemory slice_results(static_cast<std::size_t>(number) * kernels_.slice_result_bytes,
                                     on);
    for (const auto feedback :
         {CudaFeedback::kNone, CudaFeedback::kAtOnce, CudaFeedback::kDeferred}) {
      for_each_batch(std::span<const EncodeSlice>(slices[static_cast<int>(feedback)]),
                     [&](const Batch<EncodeSlice>& batch) {
                       encode_batch(batch, feedback, tile_results.data(), slice_results.data(), on);
                     });
    }
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
        launch(kernels_.decode, batch.blocks, static_cast<cudaStream_t>(stream), batch);
      });
    }
  }

  void settle(const State& state, std::int64_t elements, void* stream) const override {
    if (state.data == nullptr || state.deferred == nullptr || elements <= 0) return;
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

  /// Launches a kernel that takes the algorithm, a batch and what else there is.
  template <class Slice, class... Arguments>
  void launch(const void* kernel, std::int64_t blocks, cudaStream_t stream,
              const Batch<Slice>& batch, Arguments... arguments) const {
    void* pointers[] = {const_cast<std::byte*>(bound_.bytes), const_cast<Batch<Slice>*>(&batch),
                        &arguments...};
    check_cuda(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(kThreadsPerBlock),
                                pointers, 0, stream),
               "launching a codec kernel");
  }

  void encode_batch(const Batch<EncodeSlice>& batch, CudaFeedback feedback, void* tile_results,
                    void* slice_results, cudaStream_t stream) const {
    for (int p = 0; p < kernels_.pass_count; ++p) {
      const CudaPassKernels& pass = kernels_.passes[p];
      launch(pass.measure[static_cast<int>(feedback)], batch.blocks, stream, batch, tile_results,
             slice_results);
      launch(pass.conclude, batch.count, stream, batch, tile_results, slice_results);
    }
    const bool coded =
        feedback != CudaFeedback::kAtOnce && kernels_.codes_after < kernels_.pass_count;
    launch(coded ? kernels_.put_back : kernels_.encode, batch.blocks, stream, batch, slice_results);
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

  const CudaQuantizerKernels& kernels_;
};

}  // namespace

std::unique_ptr<Codec> make_cuda_quantizer(const CompiledAlgorithm& program,
                                           const CudaQuantizerKernels& kernels,
                                           const double* values) {
  return std::make_unique<CudaQuantizer>(program, kernels, values);
}

}  // namespace hipress::kernels
