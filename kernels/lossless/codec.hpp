#pragma once

#include <memory>

#include "kernels/codec/codec.hpp"

/// The codec `lossless`: numbers come out with the bits that went in.
///
/// Exponents of gradients and weights are alike, signs and mantissas are noise: exponents are
/// coded (huffman.hpp), the rest goes as it is. A slice is cut into chunks of 256 KiB with a code
/// of their own; a chunk that would not get smaller goes as it is.
///
/// A message is
///
///   start    16 bytes: elements modulo 2^32, tag, type of the values, 0, bytes of the message
///   chunks   each 8 bytes, the bytes that follow (a multiple of 4) and how, then
///            as they are: the values
///            coded:       the lengths of the codes, two to a byte; the bytes of the four streams;
///                         the rest of each value; the streams; at least 8 zeros
///
/// The rest of an fp32 number is sign and mantissa: the lower 16 bits of all values, then the
/// upper 8. Of a bf16 number it is 8 bits, and of an fp16 number, whose upper byte is coded whole,
/// the lower byte. Values that are divided before are fp32. A chunk of fp32 numbers that are all
/// bf16 or fp16 numbers, as those of a tensor of half precision that was widened, is coded as one
/// of these.
namespace hipress::kernels::lossless {

/// On the CPU. A message's length varies with the data, up to encoded_bytes(), which holds for
/// fp32.
std::unique_ptr<Codec> make_codec();

/// The same on the current GPU; the same messages.
std::unique_ptr<Codec> make_cuda_codec();

}  // namespace hipress::kernels::lossless
