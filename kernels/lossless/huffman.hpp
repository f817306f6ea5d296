#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/lossless/code.hpp"

/// Entropy coder for bytes: canonical Huffman codes of at most 11 bits. Bytes are coded in four
/// streams that are decoded side by side, because each symbol of a stream depends on the end of the
/// previous one.
///
/// D. A. Huffman, "A method for the construction of minimum-redundancy codes", 1952. A decoder
/// looks up 11 bits at a time and takes all complete symbols from them, at most four. Bytes that
/// take 2.6 bits, like exponents of normally distributed numbers, come about four to a look-up.
namespace hipress::kernels::lossless {

/// Lengths of a complete prefix code in bits, by symbol; 0 if the symbol does not occur.
using CodeLengths = std::array<std::uint8_t, kSymbols>;
using Counts = std::array<std::uint32_t, kSymbols>;

Counts count_symbols(const std::uint8_t* symbols, std::int64_t count);

/// Lengths of a Huffman code, cut off at kMaxCodeBits. At least one symbol must occur.
CodeLengths code_lengths(const Counts& counts);

/// True if the lengths are those of a complete prefix code of at most kMaxCodeBits.
bool is_complete(const CodeLengths& lengths);

/// Upper bound of the streams' total size in bytes, without kSlack.
std::int64_t most_bytes(const Counts& counts, const CodeLengths& lengths);

/// Sizes of the four streams. Stream k begins at symbol k · ceil(count / 4).
struct Streams {
  std::array<std::uint32_t, kStreams> bytes = {};
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const std::uint32_t size : bytes) sum += size;
    return sum;
  }
};

/// Writes the streams contiguously, at most most_bytes() + kSlack bytes.
Streams encode_symbols(const std::uint8_t* symbols, std::int64_t count, const CodeLengths& lengths,
                       std::uint8_t* to);

/// Decodes the streams. `from` needs kSlack readable bytes past the streams, and `symbols` room for
/// `count` + kSlack. Returns false for streams that no encoder wrote; some symbols may have been
/// written by then.
bool decode_symbols(const std::uint8_t* from, const Streams& streams, const CodeLengths& lengths,
                    std::uint8_t* symbols, std::int64_t count);

}  // namespace hipress::kernels::lossless
