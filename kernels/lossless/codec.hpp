#pragma once

#include <memory>

#include "kernels/codec/codec.hpp"

/// The codec `lossless`: decoding restores the exact bits.
///
/// Exponents of gradients and weights take few values; signs and mantissas are nearly random.
/// Exponents are entropy-coded (huffman.hpp), and the other bits are sent as they are. A slice is
/// cut into chunks of 256 KiB, each with its own code. A chunk that would not shrink is sent raw.
///
/// A message is
///
///   start    16 bytes: elements modulo 2^32, tag, type of the values, 0, bytes of the message
///   chunks   each begins with 8 bytes: the number of bytes that follow (a multiple of 4), and the
///            form. In raw form, the values follow. In a coded form, these follow: the lengths of
///            the codes, two to a byte; the sizes of the four streams in bytes; the rest of each
///            value; the streams; at least 8 zeros
///
/// The rest of an fp32 number is its sign and mantissa: first the lower 16 bits of all values, then
/// the upper 8 of all. The rest of a bf16 number is 8 bits. An fp16 number's upper byte is coded
/// whole, and its rest is the lower byte. Values that the encode divides are sent as fp32. A chunk
/// of fp32 numbers that are all exact in bf16 or in fp16, such as a widened tensor of half
/// precision, is coded in that type.
namespace hipress::kernels::lossless {

/// Makes the codec for the CPU. A message's length varies with the data, up to encoded_bytes(),
/// which is the bound for fp32.
std::unique_ptr<Codec> make_codec();

/// Makes the codec for the current GPU; messages have the same bits.
std::unique_ptr<Codec> make_cuda_codec();

}  // namespace hipress::kernels::lossless
