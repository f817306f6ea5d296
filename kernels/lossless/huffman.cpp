#include "kernels/lossless/huffman.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace hipress::kernels::lossless {

namespace {

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

struct Codes {
  std::array<std::uint16_t, kSymbols> code;

  explicit Codes(const CodeLengths& lengths) { find_codes(lengths.data(), code.data()); }
};

/// Table entry: the symbols, at most four, whose codes end within 11 bits; first symbol lowest.
struct CodeEntry {
  std::uint32_t symbols;
  std::uint8_t bits;  ///< total length of the symbols' codes
  std::uint8_t count;
  std::uint8_t first_bits;  ///< length of the first code
};

std::vector<CodeEntry> decoding_table(const CodeLengths& lengths) {
  const Codes codes(lengths);
  std::vector<CodeEntry> table(kTableSize);
  for (int symbol = 0; symbol < kSymbols; ++symbol) {
    const int length = lengths[symbol];
    if (length == 0) continue;
    const auto bits = static_cast<std::uint8_t>(length);
    for (int at = codes.code[symbol]; at < kTableSize; at += 1 << length) {
      table[at] = {static_cast<std::uint32_t>(symbol), bits, 1, bits};
    }
  }
  // The bits after the first symbol index the table again. Their upper bits are unknown, so a next
  // symbol counts only if its code ends within the 11 bits.
  std::vector<CodeEntry> more = table;
  for (int at = 0; at < kTableSize; ++at) {
    CodeEntry& entry = more[at];
    while (entry.count < 4) {
      const CodeEntry& next = table[at >> entry.bits];
      if (entry.bits + next.first_bits > kMaxCodeBits) break;
      entry.symbols |= next.symbols << (8 * entry.count);
      entry.bits = static_cast<std::uint8_t>(entry.bits + next.first_bits);
      ++entry.count;
    }
  }
  return more;
}

/// Decoding position in one of the four streams.
struct Reader {
  const std::uint8_t* from;
  std::int64_t bit = 0, end_bit;
  std::uint8_t* to;
  std::uint8_t* end;

  /// True if five look-ups stay within the stream's bits and its output.
  bool has_room() const { return bit + 5 * kMaxCodeBits <= end_bit && end - to >= 5 * 4; }
};

/// Decodes the rest of a stream symbol by symbol. Returns false if it has too few or too many bits.
bool finish(Reader& reader, const CodeEntry* table) {
  while (reader.to < reader.end) {
    if (reader.bit >= reader.end_bit) return false;
    const std::uint64_t bits = load_64(reader.from + reader.bit / 8) >> (reader.bit % 8);
    const CodeEntry& entry = table[bits & (kTableSize - 1)];
    *reader.to++ = static_cast<std::uint8_t>(entry.symbols);
    reader.bit += entry.first_bits;
  }
  // The remaining bits, fewer than 8, pad the last byte.
  return reader.bit <= reader.end_bit && reader.end_bit - reader.bit < 8;
}

}  // namespace

Counts count_symbols(const std::uint8_t* symbols, std::int64_t count) {
  // Four tables, so that counting a symbol need not wait for the store of its previous count.
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
  std::array<std::uint8_t, kSymbols> present;
  int count = 0;
  for (int symbol = 0; symbol < kSymbols; ++symbol) {
    if (counts[symbol] > 0) present[count++] = static_cast<std::uint8_t>(symbol);
  }
  std::stable_sort(present.begin(), present.begin() + count,
                   [&](std::uint8_t a, std::uint8_t b) { return counts[a] < counts[b]; });
  CodeLengths lengths = {};
  TreeRoom room;
  find_lengths(present.data(), count, counts.data(), room, lengths.data());
  return lengths;
}

bool is_complete(const CodeLengths& lengths) {
  std::int32_t used = 0;
  for (const std::uint8_t length : lengths) {
    if (length > kMaxCodeBits) return false;
    used += used_up_by(length);
  }
  return used == kTableSize;
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
  for (int stream = 0; stream < kStreams; ++stream) {
    const std::int64_t first = first_of_stream(stream, count);
    const std::int64_t end = first_of_stream(stream + 1, count);
    const std::uint8_t* const begin = to;
    std::uint64_t pending = 0;
    std::uint32_t bits = 0;  // in `pending`; fewer than 8 after each flush
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
  const std::vector<CodeEntry> table_of = decoding_table(lengths);
  const CodeEntry* const table = table_of.data();
  std::array<Reader, kStreams> readers;
  for (int stream = 0; stream < kStreams; ++stream) {
    readers[stream] = {from, 0, std::int64_t{streams.bytes[stream]} * 8,
                       symbols + first_of_stream(stream, count),
                       symbols + first_of_stream(stream + 1, count)};
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
        const CodeEntry entry = table[bits[k] & (kTableSize - 1)];
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
