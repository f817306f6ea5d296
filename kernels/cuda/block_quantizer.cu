// Launches the kernels of block quantisers.

#include <map>
#include <vector>

#include "kernels/codec/item_checks.hpp"
#include "kernels/cuda/algorithm.hpp"
#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/block_quantizer_kernels.hpp"
#include "kernels/cuda/codec.hpp"
#include "kernels/cuda/decode.hpp"

namespace hipress::kernels {

namespace {

class CudaBlockQuantizer : public CudaAlgorithm {
 public:
  CudaBlockQuantizer(const CompiledAlgorithm& program, const CudaBlockKernels& kernels,
                     const double* values)
      : CudaAlgorithm(program, values), kernels_(kernels) {}

  void encode(std::span<const EncodeItem> items, void* stream) const override {
    check_encodes(items);
    const auto on = static_cast<cudaStream_t>(stream);
    if (items.empty()) return;
    const std::size_t bytes = items.size() * sizeof(std::uint32_t);
    const StreamMemory flags(bytes, on);
    check_cuda(cudaMemsetAsync(flags.data(), 0, bytes, on), "clearing temporary memory");
    std::map<ValueType, std::vector<BlockEncodeSlice>> groups;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].elements <= 0) {
        encode_nothing(items[i], on);
        continue;
      }
      groups[items[i].type].push_back(
          slice_of(items[i], static_cast<std::uint32_t*>(flags.data()) + i));
    }
    for (const auto& group : groups) {
      const ValueType type = group.first;
      const std::span<const BlockEncodeSlice> slices = group.second;
      for_each_batch(slices, [&](const Batch<BlockEncodeSlice>& batch) {
        launch(kernels_.encode[static_cast<int>(type)], batch.blocks, on, batch);
        launch(kernels_.conclude, batch.blocks, on, batch);
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

 private:
  static BlockEncodeSlice slice_of(const EncodeItem& item, std::uint32_t* non_finite) {
    BlockEncodeSlice slice = {};
    slice.values = item.values;
    slice.elements = item.elements;
    slice.type = item.type;
    slice.rule = ValueRule::of(item);
    slice.residual = item.state.data;
    slice.message = item.message;
    slice.draws = draw_stream(item.key, item.elements);
    slice.message_bytes = item.message_bytes;
    slice.non_finite = non_finite;
    return slice;
  }

  const CudaBlockKernels& kernels_;
};

}  // namespace

std::unique_ptr<Codec> make_cuda_block_quantizer(const CompiledAlgorithm& program,
                                                 const CudaBlockKernels& kernels,
                                                 const double* values) {
  return std::make_unique<CudaBlockQuantizer>(program, kernels, values);
}

}  // namespace hipress::kernels
