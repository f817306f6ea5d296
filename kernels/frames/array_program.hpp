#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "kernels/codec/codec.hpp"
#include "kernels/codec/lanes.hpp"
#include "kernels/codec/slice.hpp"
#include "kernels/frames/bound_functions.hpp"
#include "kernels/frames/compiled_algorithm.hpp"
#include "kernels/frames/draws.hpp"
#include "kernels/frames/quantizer.hpp"
#include "kernels/frames/reduction.hpp"
#include "kernels/frames/scalars.hpp"
#include "kernels/frames/typed_values.hpp"

/// Frame of array programs: it runs one loop per array, on one CPU core; arrays have any length.
/// For such a program, hipress-compll writes
///
///   struct Example {
///     static constexpr std::uint16_t kTag;
///     static constexpr int kStates;          // state arrays, without the residual
///     static constexpr bool kErrorFeedback;
///     struct Wire;                           // the fields of a message
///     explicit Example(const double* values);
///     static bool finite(const Wire&);       // true if its floats are finite
///     ArrayLayout layout(std::int64_t elements) const;
///     void encode(ArrayEncoder<Wire>&) const;
///     bool decode(const ArrayMessage<Wire>&, float* decoded) const;  // false: damaged
///   };
///
/// A message: QuantizerHeader; Wire; the lengths of its arrays (several arrays may share one); then
/// the arrays. Each array begins at a multiple of 16 bytes and has room for its maximal length.
///
/// Standard-library functions instantiated here must not be compiled for different instruction sets
/// in one program; host/export.hpp ensures that.
namespace hipress::kernels {

/// Indices in messages have 32 bits.
inline constexpr std::int64_t kMaxArrayElements = (std::int64_t{1} << 32) - 1;

/// Storage of an element of a message's array.
enum class PartKind : std::uint8_t { kFloat, kInt, kByte, kWord };

/// Layout of the arrays in a slice's message.
struct ArrayLayout {
  struct Part {
    PartKind kind;
    int length;  ///< index into the array lengths; -1 if it has the slice's length
    std::int64_t bits;
    std::int64_t most;    ///< maximal number of elements
    std::int64_t offset;  ///< offset in the message, in bytes
  };
  std::vector<std::int64_t> most_of_length;
  std::vector<Part> parts;
  std::int64_t bytes = 0;

  static std::int64_t aligned(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }

  /// Begins a message with `wire_bytes` of fields, and with arrays of at most the lengths `most`.
  ArrayLayout(std::int64_t wire_bytes, std::vector<std::int64_t> most)
      : most_of_length(std::move(most)) {
    lengths_at_ = static_cast<std::int64_t>(sizeof(QuantizerHeader)) + (wire_bytes + 7) / 8 * 8;
    bytes = aligned(lengths_at_ + 8 * static_cast<std::int64_t>(most_of_length.size()));
  }

  std::int64_t lengths_at() const { return lengths_at_; }

  /// Size of `elements` elements of a part, in bytes.
  static std::int64_t bytes_of(PartKind kind, std::int64_t bits, std::int64_t elements) {
    switch (kind) {
      case PartKind::kFloat:
        return 4 * elements;
      case PartKind::kInt:
        return 8 * elements;
      case PartKind::kByte:
        return elements;
      case PartKind::kWord:
        return bits == 8 || bits == 16 || bits == 32 ? bits / 8 * elements
                                                     : words_of(elements) * 4 * bits;
    }
    return 0;
  }

  void add(PartKind kind, int length, std::int64_t bits, std::int64_t elements) {
    const std::int64_t most =
        length < 0 ? elements : most_of_length[static_cast<std::size_t>(length)];
    parts.push_back({kind, length, bits, most, bytes});
    bytes = aligned(bytes + bytes_of(kind, bits, most));
  }

 private:
  std::int64_t lengths_at_ = 0;
};

// ---- arrays ----

inline std::int64_t checked_length(std::int64_t length) {
  if (length > kMaxArrayElements) {
    throw std::length_error("a program asks for an array of 2^32 elements or more");
  }
  return length < 0 ? 0 : length;
}

template <class T, class Element>
std::vector<T> made(std::int64_t length, const Element& element) {
  std::vector<T> values(static_cast<std::size_t>(checked_length(length)));
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(values.size()); ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<T>(element(i));
  }
  return values;
}

/// Element at `index`; 0 outside the array.
template <class T>
T element_at(const T* values, std::int64_t length, std::int64_t index) {
  return index >= 0 && index < length ? values[index] : T{};
}
template <class T>
T element_at(const std::vector<T>& values, std::int64_t index) {
  return element_at(values.data(), static_cast<std::int64_t>(values.size()), index);
}

/// Indices of the elements that meet a condition.
template <class Condition>
std::vector<std::int64_t> filtered(std::int64_t length, const Condition& condition) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < length; ++i) {
    if (condition(i)) indices.push_back(i);
  }
  return indices;
}

/// Sort key of a float: ordered as numbers, with -0 before 0 and NaN at the ends. A total order, so
/// any sorting is well-defined.
inline std::int64_t order_of(float value) {
  const auto bits = static_cast<std::int32_t>(as_bits(value));
  return bits < 0 ? std::int64_t{INT32_MIN} - bits - 1 : bits;
}
inline std::int64_t order_of(std::int64_t value) { return value; }

/// Indices in the order of their elements; a stable sort.
template <class Key>
std::vector<std::int64_t> sorted(std::int64_t length, bool descending, const Key& key) {
  const std::vector<std::int64_t> keys =
      made<std::int64_t>(length, [&](std::int64_t i) { return order_of(key(i)); });
  std::vector<std::int64_t> indices(keys.size());
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  std::stable_sort(indices.begin(), indices.end(), [&](std::int64_t a, std::int64_t b) {
    const std::int64_t x = keys[static_cast<std::size_t>(a)], y = keys[static_cast<std::size_t>(b)];
    return descending ? y < x : x < y;
  });
  return indices;
}

/// Ascending indices of the `count` elements largest in magnitude; lower indices win ties. Zeros
/// and non-finite elements are excluded.
template <class Element>
std::vector<std::int64_t> largest(std::int64_t length, std::int64_t count, const Element& element) {
  const std::vector<std::uint32_t> keys = made<std::uint32_t>(length, [&](std::int64_t i) {
    const std::uint32_t bits = as_bits(static_cast<float>(element(i))) & 0x7fffffffu;
    return bits < 0x7f800000u ? bits : 0;
  });
  std::vector<std::int64_t> indices =
      filtered(length, [&](std::int64_t i) { return keys[static_cast<std::size_t>(i)] != 0; });
  if (count < static_cast<std::int64_t>(indices.size())) {
    const auto end = indices.begin() + std::max<std::int64_t>(count, 0);
    std::nth_element(indices.begin(), end, indices.end(), [&](std::int64_t a, std::int64_t b) {
      const std::uint32_t x = keys[static_cast<std::size_t>(a)],
                          y = keys[static_cast<std::size_t>(b)];
      return x != y ? x > y : a < b;
    });
    indices.erase(end, indices.end());
    std::sort(indices.begin(), indices.end());
  }
  return indices;
}

/// Marks the elements whose indices index(0) … index(count - 1) name; ignores those out of range.
template <class Index>
std::vector<std::uint8_t> marked(std::int64_t length, std::int64_t count, const Index& index) {
  std::vector<std::uint8_t> marks(static_cast<std::size_t>(length));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = index(i);
    if (at >= 0 && at < length) marks[static_cast<std::size_t>(at)] = 1;
  }
  return marks;
}

/// Array with value(i) at index(i) and 0 elsewhere; the last value of an index wins. Sets `inside`
/// to false if an index is out of range.
template <class T, class Index, class Value>
std::vector<T> scattered(std::int64_t length, std::int64_t count, const Index& index,
                         const Value& value, bool& inside) {
  std::vector<T> values(static_cast<std::size_t>(checked_length(length)));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = index(i);
    if (at >= 0 && at < length) {
      values[static_cast<std::size_t>(at)] = static_cast<T>(value(i));
    } else {
      inside = false;
    }
  }
  return values;
}

// ---- reductions ----

/// Sum of a slice's floats, in the order of reduction.hpp.
template <class Element>
double sum_of(std::int64_t length, const Element& element) {
  const auto tile_sum = [&](std::int64_t tile, auto zero) {
    using T = decltype(zero);
    struct Row {
      T lane[kWordElements];
    };
    Row rows[kTileWords];
    for (int i = 0; i < kTileElements; ++i) {
      const std::int64_t at = tile * kTileElements + i;
      rows[i / kWordElements].lane[i % kWordElements] =
          at < length ? static_cast<T>(static_cast<float>(element(at))) : T{};
    }
    for (int rows_left = kTileWords; rows_left > 1; rows_left /= 2) {
      for (int r = 0; r < rows_left / 2; ++r) {
        for (int l = 0; l < kWordElements; ++l) {
          rows[r].lane[l] = rows[2 * r].lane[l] + rows[2 * r + 1].lane[l];
        }
      }
    }
    for (int half = kWordElements / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) rows[0].lane[l] = rows[0].lane[l] + rows[0].lane[l + half];
    }
    return rows[0].lane[0];
  };
  double slice = 0;
  const std::int64_t tiles = (length + kTileElements - 1) / kTileElements;
  for (std::int64_t block = 0; block * kBlockTiles < tiles; ++block) {
    double sums[kBlockTiles] = {};
    for (int i = 0; i < kBlockTiles && block * kBlockTiles + i < tiles; ++i) {
      const std::int64_t tile = block * kBlockTiles + i;
      const float sum = tile_sum(tile, 0.0f);
      sums[i] = Sum::overflowed(sum) ? tile_sum(tile, 0.0) : sum;
    }
    for (int left = kBlockTiles; left > 1; left /= 2) {
      for (int i = 0; i < left / 2; ++i) sums[i] = sums[2 * i] + sums[2 * i + 1];
    }
    slice += sums[0];
  }
  return slice + 0.0;
}

/// Folds `initial` with the results of blocks of 1024 elements. The fold of a block begins with its
/// first element.
template <class T, class Element, class Fold>
T folded(std::int64_t length, T initial, const Element& element, const Fold& fold) {
  constexpr std::int64_t kBlock = 1024;
  T result = initial;
  for (std::int64_t begin = 0; begin < length; begin += kBlock) {
    T block = static_cast<T>(element(begin));
    for (std::int64_t i = begin + 1; i < std::min(begin + kBlock, length); ++i) {
      block = static_cast<T>(fold(block, static_cast<T>(element(i))));
    }
    result = static_cast<T>(fold(result, block));
  }
  return result;
}

// ---- messages ----

/// Writes number i of an array of whole numbers.
inline void put_number(std::byte* part, PartKind kind, std::int64_t bits, std::int64_t i,
                       std::int64_t value) {
  if (kind == PartKind::kInt) {
    std::memcpy(part + 8 * i, &value, 8);
  } else if (kind == PartKind::kByte || bits == 8 || bits == 16 || bits == 32) {
    const std::int64_t bytes = kind == PartKind::kByte ? 1 : bits / 8;
    std::memcpy(part + bytes * i, &value, static_cast<std::size_t>(bytes));
  } else {
    auto* planes = reinterpret_cast<std::uint32_t*>(part) + i / kWordElements * bits;
    for (std::int64_t p = 0; p < bits; ++p) {
      planes[p] |= static_cast<std::uint32_t>(value >> p & 1) << (i % kWordElements);
    }
  }
}

inline std::int64_t number_in(const std::byte* part, PartKind kind, std::int64_t bits,
                              std::int64_t i) {
  std::int64_t value = 0;
  if (kind == PartKind::kInt) {
    std::memcpy(&value, part + 8 * i, 8);
  } else if (kind == PartKind::kByte || bits == 8 || bits == 16 || bits == 32) {
    const std::int64_t bytes = kind == PartKind::kByte ? 1 : bits / 8;
    std::memcpy(&value, part + bytes * i, static_cast<std::size_t>(bytes));
  } else {
    const auto* planes = reinterpret_cast<const std::uint32_t*>(part) + i / kWordElements * bits;
    for (std::int64_t p = 0; p < bits; ++p) {
      value |= static_cast<std::int64_t>(planes[p] >> (i % kWordElements) & 1) << p;
    }
  }
  return value;
}

/// One encode: its inputs, and the message and states that it writes.
template <class WireType>
class ArrayEncoder {
 public:
  /// `residual` is true if state array 0 is a residual; `states` counts the other arrays.
  ArrayEncoder(const EncodeItem& item, const ArrayLayout& layout, bool residual, int states)
      : item_(item), layout_(layout), residual_(residual) {
    ValueRule rule = ValueRule::of(item);
    rule.adds_residual = residual && item.state.data != nullptr;
    gradient_ = made<float>(item.elements, [&](std::int64_t i) {
      return rule(load_value(item.values, item.type, i),
                  rule.adds_residual ? item.state.data[i] : 0.0f);
    });
    if (item.state.data == nullptr && states > 0) {
      nothing_.assign(static_cast<std::size_t>(item.elements), 0.0f);
    }
    std::memset(item.message, 0, static_cast<std::size_t>(layout.bytes));
  }

  std::int64_t elements() const { return item_.elements; }
  const float* gradient() const { return gradient_.data(); }
  DrawStream draws() const { return draw_stream(item_.key, item_.elements); }
  /// State array `number`, not counting the residual.
  const float* state(int number) const {
    if (item_.state.data == nullptr) return nothing_.data();
    return item_.state.data + (number + (residual_ ? 1 : 0)) * item_.state.stride;
  }
  /// Keeps the new content of state array `number` until commit() writes it.
  void keep(int number, std::vector<float> next) {
    next_.resize(std::max(next_.size(), static_cast<std::size_t>(number) + 1));
    next_[static_cast<std::size_t>(number)] = std::move(next);
  }
  void commit() {
    if (item_.state.data == nullptr) return;
    for (std::size_t i = 0; i < next_.size(); ++i) {
      const auto array = static_cast<std::int64_t>(i) + (residual_ ? 1 : 0);
      std::copy(next_[i].begin(), next_[i].end(), item_.state.data + array * item_.state.stride);
    }
  }
  /// True if all floats of the message's arrays are finite.
  bool finite() const { return finite_; }

  WireType wire = {};

  void length(int number, std::int64_t length) {
    std::memcpy(item_.message + layout_.lengths_at() + 8 * number, &length, 8);
  }
  template <class Element>
  void floats(int number, std::int64_t length, const Element& element) {
    for (std::int64_t i = 0; i < length; ++i) {
      const float value = element(i);
      finite_ = finite_ && is_finite(value);
      std::memcpy(place(number) + 4 * i, &value, 4);
    }
  }
  template <class Element>
  void numbers(int number, std::int64_t length, const Element& element) {
    const ArrayLayout::Part& part = layout_.parts[static_cast<std::size_t>(number)];
    for (std::int64_t i = 0; i < length; ++i) {
      put_number(place(number), part.kind, part.bits, i, element(i));
    }
  }

 private:
  std::byte* place(int number) const {
    return item_.message + layout_.parts[static_cast<std::size_t>(number)].offset;
  }

  const EncodeItem& item_;
  const ArrayLayout& layout_;
  const bool residual_;
  std::vector<float> gradient_, nothing_;
  std::vector<std::vector<float>> next_;
  bool finite_ = true;
};

/// A message to decode; its header and lengths have been checked.
template <class WireType>
class ArrayMessage {
 public:
  ArrayMessage(const std::byte* message, std::int64_t elements, const ArrayLayout& layout)
      : message_(message), elements_(elements), layout_(layout) {
    std::memcpy(&wire, message + sizeof(QuantizerHeader), sizeof wire);
  }

  std::int64_t elements() const { return elements_; }
  WireType wire;

  std::int64_t length(int number) const {
    std::int64_t length = 0;
    std::memcpy(&length, message_ + layout_.lengths_at() + 8 * number, 8);
    return length;
  }
  std::int64_t part_length(int part) const {
    const int number = layout_.parts[static_cast<std::size_t>(part)].length;
    return number < 0 ? elements_ : length(number);
  }
  std::vector<float> floats(int number) const {
    return made<float>(part_length(number), [&](std::int64_t i) {
      float value = 0;
      std::memcpy(&value, place(number) + 4 * i, 4);
      return value;
    });
  }
  std::vector<std::int64_t> numbers(int number) const {
    const ArrayLayout::Part& part = layout_.parts[static_cast<std::size_t>(number)];
    return made<std::int64_t>(part_length(number), [&](std::int64_t i) {
      return number_in(place(number), part.kind, part.bits, i);
    });
  }

  /// True if all lengths are in range and all floats finite.
  bool plausible() const {
    for (std::size_t i = 0; i < layout_.most_of_length.size(); ++i) {
      const std::int64_t found = length(static_cast<int>(i));
      if (found < 0 || found > layout_.most_of_length[i]) return false;
    }
    for (std::size_t i = 0; i < layout_.parts.size(); ++i) {
      if (layout_.parts[i].kind != PartKind::kFloat) continue;
      for (const float value : floats(static_cast<int>(i))) {
        if (!is_finite(value)) return false;
      }
    }
    return true;
  }

 private:
  const std::byte* place(int number) const {
    return message_ + layout_.parts[static_cast<std::size_t>(number)].offset;
  }

  const std::byte* message_;
  const std::int64_t elements_;
  const ArrayLayout& layout_;
};

// ---- the frame ----

/// Functions of an array program's CompiledAlgorithm.
template <class Algorithm>
struct ArrayFunctions : BoundFunctions<Algorithm> {
  using BoundFunctions<Algorithm>::algorithm;
  using Wire = typename Algorithm::Wire;

  static std::int64_t encoded_bytes(const BoundAlgorithm& bound, std::int64_t elements) {
    return elements <= 0 ? 0 : algorithm(bound).layout(elements).bytes;
  }

  static bool all_finite(const EncodeItem& item) {
    std::uint32_t flags = 0;
    for (std::int64_t i = 0; i < item.elements; ++i)
      flags |= non_finite_flag(load_value(item.values, item.type, i));
    return (flags & 0x80000000u) == 0;
  }

  static void encode(const BoundAlgorithm& bound, const EncodeItem& item) {
    if (item.elements > kMaxArrayElements) {
      throw std::invalid_argument("a slice of 2^32 elements or more; cut it into partitions");
    }
    const ArrayLayout layout = algorithm(bound).layout(item.elements);
    if (item.message_bytes != nullptr) *item.message_bytes = layout.bytes;
    ArrayEncoder<Wire> run(item, layout, Algorithm::kErrorFeedback, Algorithm::kStates);
    bool finite = all_finite(item);
    if (finite) algorithm(bound).encode(run);
    finite = finite && run.finite() && Algorithm::finite(run.wire);
    write_start(item, layout, run.wire, finite);
    std::vector<float> residual;
    if (Algorithm::kErrorFeedback && item.state.data != nullptr && finite) {
      residual = decoded_message(bound, item.message, item.elements, layout);
      finite = !residual.empty();
      for (std::size_t i = 0; i < residual.size(); ++i) {
        finite = finite && is_finite(residual[i]);
        residual[i] = held(run.gradient()[i] - residual[i]);
      }
      if (!finite) write_start(item, layout, run.wire, false);
    }
    // A program may produce infinities from finite gradients. The message then decodes to NaN on
    // all nodes, and the states are unchanged.
    if (!finite) return;
    std::copy(residual.begin(), residual.end(), item.state.data);
    run.commit();
  }

  static float held(float value) { return larger(-kLargest, smaller(kLargest, value)); }

  /// Writes the header and fields of a message; only the header if it is not finite.
  static void write_start(const EncodeItem& item, const ArrayLayout& layout, const Wire& wire,
                          bool finite) {
    if (!finite) std::memset(item.message, 0, static_cast<std::size_t>(layout.bytes));
    QuantizerHeader header;
    header.elements = static_cast<std::uint32_t>(item.elements);
    header.tag = Algorithm::kTag;
    header.non_finite = finite ? 0 : 1;
    std::memcpy(item.message, &header, sizeof header);
    if constexpr (!std::is_empty_v<Wire>) {
      if (finite) std::memcpy(item.message + sizeof header, &wire, sizeof wire);
    }
  }

  /// Decodes a message of layout.bytes bytes; empty if it is damaged.
  static std::vector<float> decoded_message(const BoundAlgorithm& bound, const std::byte* message,
                                            std::int64_t elements, const ArrayLayout& layout) {
    QuantizerHeader header;
    std::memcpy(&header, message, sizeof header);
    if (header.tag != Algorithm::kTag || header.planes != 0 || header.non_finite > 1 ||
        header.elements != static_cast<std::uint32_t>(elements)) {
      return {};
    }
    std::vector<float> decoded(static_cast<std::size_t>(elements), not_a_number());
    if (header.non_finite == 1) return decoded;
    const ArrayMessage<Wire> parts(message, elements, layout);
    if (!parts.plausible() || !algorithm(bound).decode(parts, decoded.data())) return {};
    return decoded;
  }

  static std::size_t decode(const BoundAlgorithm& bound, const DecodeItem& item) {
    const std::size_t messages = item.messages.size();
    if (item.elements > kMaxArrayElements && messages > 0) return 0;
    const ArrayLayout layout = algorithm(bound).layout(item.elements);
    std::vector<std::vector<float>> terms;
    for (std::size_t i = 0; i < messages; ++i) {
      if (item.message_bytes[i] != layout.bytes) return i;
      terms.push_back(decoded_message(bound, item.messages[i], item.elements, layout));
      if (terms.back().empty()) return i;
    }
    for (std::int64_t i = 0; i < item.elements; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (item.mode == DecodeMode::kOverwrite) {
        store_value(item.values, item.type, i, terms[0][at]);
        continue;
      }
      const float own = load_value(item.values, item.type, i);
      float sum = item.own_divisor == 1 ? own : own / item.own_divisor;
      for (const std::vector<float>& term : terms) sum = sum + term[at];
      store_value(item.values, item.type, i, item.sum_divisor == 1 ? sum : sum / item.sum_divisor);
    }
    return messages;
  }
};

template <class Algorithm>
constexpr CompiledAlgorithm array_program(const char* name, const DeclaredParameter* parameters,
                                          int count) {
  using Functions = ArrayFunctions<Algorithm>;
  return {.name = name,
          .parameters = parameters,
          .parameter_count = count,
          .error_feedback = Algorithm::kErrorFeedback,
          .state_arrays = Algorithm::kStates + (Algorithm::kErrorFeedback ? 1 : 0),
          .deferrable = false,
          .bind = Functions::bind,
          .encoded_bytes = Functions::encoded_bytes,
          .encode = Functions::encode,
          .decode = Functions::decode,
          .settle = nullptr,
          .planes_offset = 0,
          .planes = nullptr,
          .levels = nullptr,
          .cuda = {}};
}

}  // namespace hipress::kernels
