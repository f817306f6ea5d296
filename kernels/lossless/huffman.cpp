#include "kernels/lossless/huffman.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace hipress::kernels::lossless {

namespace {

constexpr int kTableSize = 1 << kMaxCodeBits;

std::uint64_t load_64(const std::uint8_t* from) {
  std::uint64_t bits;
  std::memcpy(&bits, from, sizeof bits);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  bits = __builtin_bswap64(bits);
#endif
  return bits;
}

void store_64(std::uint8_t* to, std::uint64_t bits) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  bits = __builtin_bswap64(bits);
#endif
  std::memcpy(to, &bits, sizeof bits);
}

/// Codes as they are written, the first bit lowest.
struct Codes {
  std::array<std::uint16_t, kSymbols> code = {};

  explicit Codes(const CodeLengths& lengths) {
    // Canonical: shorter codes first, of equal lengths in the order of the symbols.
    std::uint32_t next = 0;
    for (int length = 1; length <= kMaxCodeBits; ++length) {
      for (int symbol = 0; symbol < kSymbols; ++symbol) {
        if (lengths[symbol] != length) continue;
        std::uint32_t turned = 0;
        for (int bit = 0; bit < length; ++bit) turned |= (next >> bit & 1u) << (length - 1 - bit);
        code[symbol] = static_cast<std::uint16_t>(turned);
        ++next;
      }
      next <<= 1;
    }
  }
};

struct Node {
  std::uint64_t count;
  int parent;
};

/// What the codes of these lengths use up, in units of 2^-kMaxCodeBits; a complete code: all.
std::int64_t used_up(const CodeLengths& lengths) {
  std::int64_t used = 0;
  for (const std::uint8_t length : lengths) {
    if (length > 0) used += kTableSize >> length;
  }
  return used;
}

/// Symbols that 11 bits begin with: as many as are complete, in the lowest bytes.
struct Entry {
  std::uint32_t symbols;
  std::uint8_t bits;  ///< of all of them
  std::uint8_t count;
  std::uint8_t first_bits;  ///< of the first
};

std::vector<Entry> decoding_table(const CodeLengths& lengths) {
  const Codes codes(lengths);
  std::vector<Entry> table(kTableSize);
  for (int symbol = 0; symbol < kSymbols; ++symbol) {
    const int length = lengths[symbol];
    if (length == 0) continue;
    const auto bits = static_cast<std::uint8_t>(length);
    for (int at = codes.code[symbol]; at < kTableSize; at += 1 << length) {
      table[at] = {static_cast<std::uint32_t>(symbol), bits, 1, bits};
    }
  }
  // What follows the first symbol is itself an index, of bits that are known as far as they go.
  std::vector<Entry> more = table;
  for (int at = 0; at < kTableSize; ++at) {
    Entry& entry = more[at];
    while (entry.count < 4) {
      const Entry& next = table[at >> entry.bits];
      if (entry.bits + next.first_bits > kMaxCodeBits) break;
      entry.symbols |= next.symbols << (8 * entry.count);
      entry.bits = static_cast<std::uint8_t>(entry.bits + next.first_bits);
      ++entry.count;
    }
  }
  return more;
}

/// One of the four streams on its way.
struct Reader {
  const std::uint8_t* from;
  std::int64_t bit = 0, end_bit;
  std::uint8_t* to;
  std::uint8_t* end;

  /// Whether five look-ups read no bit behind the end and write nothing behind theirs.
  bool has_room() const { return bit + 5 * kMaxCodeBits <= end_bit && end - to >= 5 * 4; }
};

/// The rest of a stream, symbol by symbol.
bool finish(Reader& reader, const Entry* table) {
  while (reader.to < reader.end) {
    if (reader.bit >= reader.end_bit) return false;
    const std::uint64_t bits = load_64(reader.from + reader.bit / 8) >> (reader.bit % 8);
    const Entry& entry = table[bits & (kTableSize - 1)];
    *reader.to++ = static_cast<std::uint8_t>(entry.symbols);
    reader.bit += entry.first_bits;
  }
  // Less than a byte is left, and it is what fills the last one up.
  return reader.bit <= reader.end_bit && reader.end_bit - reader.bit < 8;
}

}  // namespace

Counts count_symbols(const std::uint8_t* symbols, std::int64_t count) {
  // Four tables: a symbol that comes again at once does not wait for its own count.
  std::array<Counts, 4> tables = {};
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int k = 0; k < 4; ++k) ++tables[k][symbols[i + k]];
  }
  for (; i < count; ++i) ++tables[0][symbols[i]];
  for (int symbol = 0; symbol < kSymbols; ++symbol) {
    for (int k = 1; k < 4; ++k) tables[0][symbol] += tables[k][symbol];
  }
  return tables[0];
}

CodeLengths code_lengths(const Counts& counts) {
  std::vector<int> present;
  for (int symbol = 0; symbol < kSymbols; ++symbol) {
    if (counts[symbol] > 0) present.push_back(symbol);
  }
  CodeLengths lengths = {};
  if (present.size() == 1) {
    // A complete code has two symbols at least.
    lengths[present[0]] = 1;
    lengths[present[0] == 0 ? 1 : 0] = 1;
    return lengths;
  }
  std::stable_sort(present.begin(), present.end(),
                   [&](int a, int b) { return counts[a] < counts[b]; });
  // Leaves and inner nodes are both in ascending order: two queues instead of a heap.
  std::vector<Node> nodes;
  for (const int symbol : present) nodes.push_back({counts[symbol], -1});
  const std::size_t leaves = nodes.size();
  std::size_t leaf = 0, inner = leaves;
  const auto least = [&] {
    const bool takes_leaf =
        leaf < leaves && (inner == nodes.size() || nodes[leaf].count <= nodes[inner].count);
    return takes_leaf ? leaf++ : inner++;
  };
  while (nodes.size() < 2 * leaves - 1) {
    const std::size_t a = least(), b = least();
    nodes[a].parent = nodes[b].parent = static_cast<int>(nodes.size());
    nodes.push_back({nodes[a].count + nodes[b].count, -1});
  }
  std::vector<int> depth(nodes.size());
  for (std::size_t i = nodes.size() - 1; i-- > 0;) {
    depth[i] = depth[static_cast<std::size_t>(nodes[i].parent)] + 1;
  }
  for (std::size_t i = 0; i < leaves; ++i) {
    lengths[present[i]] = static_cast<std::uint8_t>(std::min(depth[i], kMaxCodeBits));
  }
  // Codes that were cut off use up too much: the rarest of the others get longer until all fit.
  // What is then left is given back to the most frequent.
  std::int64_t used = used_up(lengths);
  while (used > kTableSize) {
    for (const int symbol : present) {
      if (lengths[symbol] == kMaxCodeBits) continue;
      used -= kTableSize >> (lengths[symbol] + 1);
      ++lengths[symbol];
      break;
    }
  }
  for (std::size_t i = present.size(); i-- > 0 && used < kTableSize;) {
    while (lengths[present[i]] > 1 && used + (kTableSize >> lengths[present[i]]) <= kTableSize) {
      used += kTableSize >> lengths[present[i]];
      --lengths[present[i]];
    }
  }
  return lengths;
}

bool is_complete(const CodeLengths& lengths) {
  const bool short_enough = std::all_of(lengths.begin(), lengths.end(),
                                        [](std::uint8_t length) { return length <= kMaxCodeBits; });
  return short_enough && used_up(lengths) == kTableSize;
}

std::int64_t most_bytes(const Counts& counts, const CodeLengths& lengths) {
  std::int64_t bits = 0;
  for (int symbol = 0; symbol < kSymbols; ++symbol) {
    bits += std::int64_t{counts[symbol]} * lengths[symbol];
  }
  return bits / 8 + kStreams;
}

Streams encode_symbols(const std::uint8_t* symbols, std::int64_t count, const CodeLengths& lengths,
                       std::uint8_t* to) {
  struct Coded {
    std::uint32_t code, bits;
  };
  const Codes codes(lengths);
  std::array<Coded, kSymbols> table;
  for (int symbol = 0; symbol < kSymbols; ++symbol) {
    table[symbol] = {codes.code[symbol], lengths[symbol]};
  }
  Streams streams;
  const std::int64_t quarter = (count + kStreams - 1) / kStreams;
  for (int stream = 0; stream < kStreams; ++stream) {
    const std::int64_t first = std::min(stream * quarter, count);
    const std::int64_t end = std::min(first + quarter, count);
    const std::uint8_t* const begin = to;
    std::uint64_t pending = 0;
    std::uint32_t bits = 0;  // pending: fewer than 8 between the steps
    const auto flush = [&] {
      store_64(to, pending);
      to += bits / 8;
      pending >>= bits / 8 * 8;
      bits %= 8;
    };
    std::int64_t i = first;
    for (; i + 4 <= end; i += 4) {
      const Coded a = table[symbols[i]], b = table[symbols[i + 1]];
      const Coded c = table[symbols[i + 2]], d = table[symbols[i + 3]];
      const std::uint64_t ab = a.code | b.code << a.bits, cd = c.code | d.code << c.bits;
      const std::uint32_t ab_bits = a.bits + b.bits;
      pending |= (ab | cd << ab_bits) << bits;
      bits += ab_bits + c.bits + d.bits;
      flush();
    }
    for (; i < end; ++i) {
      const Coded one = table[symbols[i]];
      pending |= std::uint64_t{one.code} << bits;
      bits += one.bits;
      flush();
    }
    if (bits > 0) {
      store_64(to, pending);
      ++to;
    }
    streams.bytes[stream] = static_cast<std::uint32_t>(to - begin);
  }
  return streams;
}

bool decode_symbols(const std::uint8_t* from, const Streams& streams, const CodeLengths& lengths,
                    std::uint8_t* symbols, std::int64_t count) {
  const std::vector<Entry> table_of = decoding_table(lengths);
  const Entry* const table = table_of.data();
  const std::int64_t quarter = (count + kStreams - 1) / kStreams;
  std::array<Reader, kStreams> readers;
  for (int stream = 0; stream < kStreams; ++stream) {
    const std::int64_t first = std::min(stream * quarter, count);
    readers[stream] = {from, 0, std::int64_t{streams.bytes[stream]} * 8, symbols + first,
                       symbols + std::min(first + quarter, count)};
    from += streams.bytes[stream];
  }
  auto& [a, b, c, d] = readers;
  while (a.has_room() && b.has_room() && c.has_room() && d.has_room()) {
    std::uint64_t bits[kStreams];
    for (int k = 0; k < kStreams; ++k) {
      bits[k] = load_64(readers[k].from + readers[k].bit / 8) >> (readers[k].bit % 8);
    }
    for (int step = 0; step < 5; ++step) {
#pragma GCC unroll 4
      for (int k = 0; k < kStreams; ++k) {
        const Entry entry = table[bits[k] & (kTableSize - 1)];
        std::memcpy(readers[k].to, &entry.symbols, sizeof entry.symbols);
        readers[k].to += entry.count;
        readers[k].bit += entry.bits;
        bits[k] >>= entry.bits;
      }
    }
  }
  return finish(a, table) && finish(b, table) && finish(c, table) && finish(d, table);
}

}  // namespace hipress::kernels::lossless
