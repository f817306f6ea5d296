#pragma once

#include <memory>

#include "kernels/codec/codec.hpp"

/// Shorter messages of sparsifiers, whose entries otherwise take 8 bytes each.
///
/// Indices ascend, so they are written as Elias and Fano do: of an index its lowest l bits as they
/// are, and the gaps between the upper parts in unary. With l = ⌊log2(n/k)⌋, k entries of n
/// elements take k·l + k + ⌊n/2^l⌋ + 1 bits, which is 8.6 bits an entry at 1 %; the length depends
/// on n and k alone, not on the data. P. Elias, "Efficient storage and retrieval by content and
/// address of static files", 1974; R. Fano, "On the number of bits required to implement an
/// associative memory", 1971.
///
/// A message is
///
///   start   16 bytes: SparsifierHeader of the message that is packed, whose `zero` is the Packing
///   lower   the lower bits of all indices, as 64-bit words
///   upper   bit (index >> l) + i is set for entry i, as 64-bit words
///   values  fp32, or fp16
namespace hipress::kernels::sparse {

enum class Packing : std::uint8_t {
  kNone,
  kIndices,  ///< values stay fp32
  kAll,      ///< values are fp16; what rounding takes from them stays in the encoder's state
};

/// A sparsifier's codec on the CPU with packed messages. `waiting_array` is the state array in
/// which waits what is not sent; -1: there is none.
std::unique_ptr<Codec> make_packed(std::unique_ptr<Codec> sparsifier, Packing packing,
                                   int waiting_array);

}  // namespace hipress::kernels::sparse
