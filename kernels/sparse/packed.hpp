#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/codec/codec.hpp"
#include "kernels/sparse/layout.hpp"

/// Shorter messages of sparsifiers. Plain messages take 8 bytes an entry.
///
/// Ascending indices are stored in Elias-Fano code: the lowest l bits of each index as they are,
/// and the gaps between the upper parts in unary. With l = ⌊log2(n/k)⌋, k entries of n elements
/// take k·l + k + ⌊n/2^l⌋ + 1 bits, which is 8.6 bits an entry at 1 %. The length depends on n and
/// k alone, not on the data. P. Elias, "Efficient storage and retrieval by content and address of
/// static files", 1974; R. Fano, "On the number of bits required to implement an associative
/// memory", 1971.
///
/// A message is
///
///   start   16 bytes: the SparsifierHeader of the packed message; its `zero` holds the Packing
///   lower   the lower bits of all indices, as 64-bit words
///   upper   bit (index >> l) + i is set for entry i, as 64-bit words
///   values  fp32, or fp16
namespace hipress::kernels::sparse {

/// Base of the packed codecs of all devices.
class PackedCodec : public Codec {
 public:
  PackedCodec(std::unique_ptr<Codec> sparsifier, Packing packing, int waiting_array)
      : sparsifier_(std::move(sparsifier)), packing_(packing), waiting_array_(waiting_array) {}

  const CodecTraits& traits() const override { return sparsifier_->traits(); }
  std::int64_t encoded_bytes(std::int64_t elements) const override { return layout(elements).end; }
  /// Temporary memory of the sparsifier, plus the plain messages. Twice their size also covers the
  /// counts per thread block in cuda/packed.cu.
  std::int64_t temporary_bytes(std::int64_t elements, std::int64_t messages) const override {
    const std::int64_t plain = 2 * sparsifier_->encoded_bytes(elements);
    return sparsifier_->temporary_bytes(elements, messages) +
           std::max<std::int64_t>(1, messages) * plain;
  }
  void settle(const State& state, std::int64_t elements, void* stream) const override {
    sparsifier_->settle(state, elements, stream);
  }

 protected:
  Layout layout(std::int64_t elements) const {
    const std::int64_t bytes = elements > 0 ? sparsifier_->encoded_bytes(elements) : 0;
    return Layout::of(elements, std::max<std::int64_t>(0, bytes - kStartBytes) / 8, packing_);
  }

  /// Array to which rounding errors of the slice's values are added; null if none.
  float* waiting(const State& state) const {
    const bool keeps = packing_ == Packing::kAll && state.data != nullptr && waiting_array_ >= 0;
    return keeps ? state.data + waiting_array_ * state.stride : nullptr;
  }

  std::unique_ptr<Codec> sparsifier_;
  Packing packing_;
  int waiting_array_;
};

/// Packs the messages of a sparsifier's codec on the CPU. `waiting_array` is the index of the state
/// array that holds unsent values; -1 if the sparsifier has no such array.
std::unique_ptr<Codec> make_packed(std::unique_ptr<Codec> sparsifier, Packing packing,
                                   int waiting_array);

/// Packs the messages of a sparsifier's codec on the current GPU likewise; they have the same bits.
std::unique_ptr<Codec> make_cuda_packed(std::unique_ptr<Codec> sparsifier, Packing packing,
                                        int waiting_array);

}  // namespace hipress::kernels::sparse
