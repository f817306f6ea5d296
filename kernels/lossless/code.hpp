#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/lanes.hpp"

/// Canonical Huffman codes of the entropy coder (huffman.hpp), for hosts and GPUs. Arrays of
/// kSymbols are plain pointers here, since device code has no std::array.
namespace hipress::kernels::lossless {

inline constexpr int kMaxCodeBits = 11;
inline constexpr int kTableSize = 1 << kMaxCodeBits;
inline constexpr int kSymbols = 256;
inline constexpr int kStreams = 4;
/// Bytes past the end of the streams that coders may read and write.
inline constexpr std::int64_t kSlack = 8;

/// Share of the code space that a code of this length takes, in units of 2^-kMaxCodeBits (Kraft's
/// inequality). A complete code takes kTableSize.
HIPRESS_LANES std::int32_t used_up_by(int length) {
  return length > 0 && length <= kMaxCodeBits ? kTableSize >> length : 0;
}

/// Memory for a Huffman tree: leaves, then inner nodes.
struct TreeRoom {
  std::uint64_t counts[2 * kSymbols];
  std::uint16_t parents[2 * kSymbols];
  std::uint8_t depths[2 * kSymbols];
};

/// Computes the depths of the leaves of a Huffman tree of at least two leaves, whose counts ascend.
/// Inner nodes are made in ascending order, too, so two queues replace the heap (van Leeuwen 1976).
HIPRESS_LANES void find_depths(int leaves, TreeRoom& room) {
  int leaf = 0, inner = leaves, nodes = leaves;
  const auto least = [&] {
    const bool takes_leaf =
        leaf < leaves && (inner == nodes || room.counts[leaf] <= room.counts[inner]);
    return takes_leaf ? leaf++ : inner++;
  };
  while (nodes < 2 * leaves - 1) {
    const int a = least(), b = least();
    room.parents[a] = room.parents[b] = static_cast<std::uint16_t>(nodes);
    room.counts[nodes++] = room.counts[a] + room.counts[b];
  }
  room.depths[nodes - 1] = 0;
  for (int i = nodes - 1; i-- > 0;) {
    room.depths[i] = static_cast<std::uint8_t>(room.depths[room.parents[i]] + 1);
  }
}

/// Makes the code complete after lengths were cut off at kMaxCodeBits. While codes exceed the code
/// space, the rarest symbols get longer codes; the space left then shortens the codes of the most
/// frequent symbols.
HIPRESS_LANES void complete_lengths(const std::uint8_t* present, int count, std::uint8_t* lengths) {
  std::int32_t used = 0;
  for (int i = 0; i < count; ++i) used += used_up_by(lengths[present[i]]);
  while (used > kTableSize) {
    for (int i = 0; i < count; ++i) {
      std::uint8_t& length = lengths[present[i]];
      if (length == kMaxCodeBits) continue;
      used -= used_up_by(++length);
      break;
    }
  }
  for (int i = count; i-- > 0 && used < kTableSize;) {
    std::uint8_t& length = lengths[present[i]];
    while (length > 1 && used + used_up_by(length) <= kTableSize) used += used_up_by(length--);
  }
}

/// Computes the code lengths of `count` symbols. `present` lists them by ascending count, ties by
/// symbol. The other lengths must already be 0.
HIPRESS_LANES void find_lengths(const std::uint8_t* present, int count, const std::uint32_t* counts,
                                TreeRoom& room, std::uint8_t* lengths) {
  if (count == 0) return;
  if (count == 1) {
    // A complete code has at least two symbols.
    lengths[present[0]] = 1;
    lengths[present[0] == 0 ? 1 : 0] = 1;
    return;
  }
  for (int i = 0; i < count; ++i) room.counts[i] = counts[present[i]];
  find_depths(count, room);
  for (int i = 0; i < count; ++i) {
    const std::uint8_t depth = room.depths[i];
    lengths[present[i]] = depth < kMaxCodeBits ? depth : std::uint8_t{kMaxCodeBits};
  }
  complete_lengths(present, count, lengths);
}

/// Computes the codes as they are written, the first bit lowest. They are canonical: shorter codes
/// first, equal lengths in the order of symbols.
HIPRESS_LANES void find_codes(const std::uint8_t* lengths, std::uint16_t* codes) {
  std::uint32_t next[kMaxCodeBits + 2] = {};  // by length; at first, count of codes one bit shorter
  for (int symbol = 0; symbol < kSymbols; ++symbol) {
    if (lengths[symbol] > 0) ++next[lengths[symbol] + 1];
  }
  for (int length = 1; length <= kMaxCodeBits; ++length) {
    next[length] = (next[length] + next[length - 1]) << 1;
  }
  for (int symbol = 0; symbol < kSymbols; ++symbol) {
    const int length = lengths[symbol];
    codes[symbol] = 0;
    if (length == 0) continue;
    const std::uint32_t code = next[length]++;
    std::uint32_t turned = 0;
    for (int bit = 0; bit < length; ++bit) turned |= (code >> bit & 1u) << (length - 1 - bit);
    codes[symbol] = static_cast<std::uint16_t>(turned);
  }
}

/// Index of a stream's first symbol. Of `count` symbols, each stream has a quarter, rounded up; the
/// last one has the rest.
HIPRESS_LANES std::int64_t first_of_stream(int stream, std::int64_t count) {
  const std::int64_t first = stream * ((count + kStreams - 1) / kStreams);
  return first < count ? first : count;
}

}  // namespace hipress::kernels::lossless
