#pragma once

#include <cstdint>

#include "kernels/lanes.hpp"
#include "kernels/message.hpp"

/// The one order in which statistics of a slice are summed, on every device:
///
///   tile   32 words of 32 elements. In fp32, lane by lane: words 0 and 1, words 2 and 3 …, then
///   pairs of
///          those sums, until one word is left; then lanes l and l + 16, l + 8 … until one number
///          is left. Where that overflows, the whole tile again with the same tree in double.
///   block  32 tiles = 32768 elements, neighbours pairwise, in double.
///   slice  blocks in index order, in double.
///
/// Elements behind the end of the slice count as the statistics' identity.
///
/// Statistics are a struct with a template `Partial<F>` (what is known of some elements, for lanes
/// F) that has of(values), combine(a, b), identity(), restricted(mask) and each<G>(function on one
/// member).
namespace hipress::kernels {

inline constexpr int kTileWords = 32;
inline constexpr int kTileElements = kTileWords * kWordElements;
inline constexpr int kBlockTiles = 32;
inline constexpr int kBlockElements = kBlockTiles * kTileElements;

/// Combines `row(first)` … `row(first + kRows - 1)` pairwise.
template <int kRows, class Row>
HIPRESS_LANES auto combine_rows(Row& row, int first) {
  if constexpr (kRows == 1) {
    return row(first);
  } else {
    const auto left = combine_rows<kRows / 2>(row, first);
    const auto right = combine_rows<kRows / 2>(row, first + kRows / 2);
    return combine(left, right);
  }
}

/// Combines the 32 rows of a tile. Eight at a time are unrolled: enough to keep partial results in
/// registers, and small enough for the instruction cache.
template <class Row>
HIPRESS_LANES auto combine_tile(Row& row) {
  decltype(row(0)) eight[4];
  for (int i = 0; i < 4; ++i) eight[i] = combine_rows<8>(row, 8 * i);
  return combine(combine(eight[0], eight[1]), combine(eight[2], eight[3]));
}

/// Combines `count` (a power of two) neighbours pairwise, in place; the result is parts[0].
template <class Part>
HIPRESS_LANES void combine_neighbours(Part* parts, int count) {
  for (; count > 1; count /= 2) {
    for (int i = 0; i < count / 2; ++i) parts[i] = combine(parts[2 * i], parts[2 * i + 1]);
  }
}

/// For Partial::each: one precision's members as those of another.
struct Widen {
  HIPRESS_LANES double operator()(float value) const { return value; }
  HIPRESS_LANES std::uint64_t operator()(std::uint32_t count) const { return count; }
};

/// A reduction that asks nothing: for algorithms whose codes and levels need no statistics.
struct NoStatistics {
  static constexpr bool kReadsValues = false;

  template <class F>
  struct Partial {
    HIPRESS_LANES static Partial of(F) { return {}; }
    HIPRESS_LANES static Partial identity() { return {}; }
    HIPRESS_LANES Partial restricted(MaskLanes<F>) const { return {}; }
    HIPRESS_LANES bool overflowed() const { return false; }
    template <class G, class Function>
    HIPRESS_LANES Partial<G> each(Function) const {
      return {};
    }
    HIPRESS_LANES friend Partial combine(Partial, Partial) { return {}; }
  };
};

/// Sums of the non-negative and of the negative values, and how many are negative.
struct SignSums {
  static constexpr bool kReadsValues = true;

  template <class F>
  struct Partial {
    F non_negative = {};
    F negative = {};
    UnsignedLanes<F> negatives = {};

    HIPRESS_LANES static Partial of(F value) {
      const MaskLanes<F> is_negative = less(value, F{});
      return {select(is_negative, F{}, value), select(is_negative, value, F{}),
              select(is_negative, UnsignedLanes<F>{} + 1u, UnsignedLanes<F>{})};
    }
    HIPRESS_LANES static Partial identity() { return {}; }
    HIPRESS_LANES Partial restricted(MaskLanes<F> to) const {
      return {select(to, non_negative, F{}), select(to, negative, F{}),
              select(to, negatives, UnsignedLanes<F>{})};
    }
    /// A sum of finite values left the range of its type.
    HIPRESS_LANES bool overflowed() const {
      return !(non_negative <= 0x1.fffffep127f && negative >= -0x1.fffffep127f);
    }
    template <class G, class Function>
    HIPRESS_LANES Partial<G> each(Function function) const {
      return {function(non_negative), function(negative), function(negatives)};
    }
    HIPRESS_LANES friend Partial combine(Partial a, Partial b) {
      return {a.non_negative + b.non_negative, a.negative + b.negative, a.negatives + b.negatives};
    }
  };
};

/// The least and the largest value. Which zero a range ends at is decided later: -0 == 0 here.
struct Range {
  static constexpr bool kReadsValues = true;

  template <class F>
  struct Partial {
    F least = {};
    F most = {};

    HIPRESS_LANES static Partial of(F value) { return {value, value}; }
    HIPRESS_LANES static Partial identity() { return {F{} + infinity(), F{} - infinity()}; }
    HIPRESS_LANES Partial restricted(MaskLanes<F> to) const {
      return {select(to, least, identity().least), select(to, most, identity().most)};
    }
    HIPRESS_LANES bool overflowed() const { return false; }
    template <class G, class Function>
    HIPRESS_LANES Partial<G> each(Function function) const {
      return {function(least), function(most)};
    }
    HIPRESS_LANES friend Partial combine(Partial a, Partial b) {
      return {smaller(b.least, a.least), larger(b.most, a.most)};
    }
  };
};

}  // namespace hipress::kernels
