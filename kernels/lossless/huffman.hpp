#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/lossless/code.hpp"

/// An entropy coder for bytes: canonical Huffman codes of at most 11 bits. The bytes are coded in
/// four streams that are decoded side by side, because decoding a single stream would wait for its
/// own previous symbol.
///
/// D. A. Huffman, "A method for the construction of minimum-redundancy codes", 1952. A decoder
/// looks up 11 bits at a time and takes all complete symbols from them, at most four. Bytes that
/// cost 2.6 bits, as the exponents of normal numbers do, come four to a step.
namespace hipress::kernels::lossless {

/// Bits of each symbol's code; 0: it does not occur. A complete prefix code.
using CodeLengths = std::array<std::uint8_t, kSymbols>;
using Counts = std::array<std::uint32_t, kSymbols>;

/// How often each byte occurs.
Counts count_symbols(const std::uint8_t* symbols, std::int64_t count);

/// The lengths of a Huffman code for symbols of which at least one occurs, cut off at kMaxCodeBits.
CodeLengths code_lengths(const Counts& counts);

/// Whether lengths are those of a complete prefix code of at most kMaxCodeBits.
bool is_complete(const CodeLengths& lengths);

/// The most bytes that `count` symbols come to, without kSlack.
std::int64_t most_bytes(const Counts& counts, const CodeLengths& lengths);

/// Stream k has symbols [k · ceil(count / 4), …): a quarter each, the last one what is left.
struct Streams {
  std::array<std::uint32_t, kStreams> bytes = {};
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const std::uint32_t size : bytes) sum += size;
    return sum;
  }
};

/// Writes the streams one after the other, at most most_bytes() + kSlack bytes.
Streams encode_symbols(const std::uint8_t* symbols, std::int64_t count, const CodeLengths& lengths,
                       std::uint8_t* to);

/// Reads them; `from` has kSlack bytes behind the streams, and `symbols` room for kSlack more than
/// `count`. False for streams that no encoder wrote; then some symbols may have been written.
bool decode_symbols(const std::uint8_t* from, const Streams& streams, const CodeLengths& lengths,
                    std::uint8_t* symbols, std::int64_t count);

}  // namespace hipress::kernels::lossless
