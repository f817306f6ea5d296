#pragma once

#include <cstdint>

#include "kernels/codec/lanes.hpp"
#include "kernels/codec/message.hpp"

/// The order in which statistics of a slice are summed, on every device:
///
///   tile   32 words of 32 elements, in fp32: lane by lane, words 0 and 1, words 2 and 3 …, then
///          pairs of those sums, until one word is left; then lanes l and l + 16, l + 8 … until one
///          number is left. If that overflows, the whole tile is summed again in double, with the
///          same tree.
///   block  32 tiles = 32768 elements, neighbours pairwise, in double.
///   slice  blocks in index order, in double.
///
/// Elements past the end of the slice count as the identity of each reduction: 0 for a sum.
///
/// The result of a measuring pass is a `Partials<F, Sum, Maximum …>`: one number per reduction for
/// every lane of F, combined in the order above.
namespace hipress::kernels {

inline constexpr int kTileWords = 32;
inline constexpr int kTileElements = kTileWords * kWordElements;
inline constexpr int kBlockTiles = 32;

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
  decltype(row(0)) even = {}, half = {}, whole = {};  // a GPU would keep an array in memory
  for (int i = 0; i < 4; ++i) {
    const auto eight = combine_rows<8>(row, 8 * i);
    const auto sixteen = combine(even, eight);
    if (i == 1) half = sixteen;
    if (i == 3) whole = combine(half, sixteen);
    even = eight;
  }
  return whole;
}

/// Combines `count` (a power of two) neighbours pairwise, in place; the result is parts[0].
template <class Part>
HIPRESS_LANES void combine_neighbours(Part* parts, int count) {
  for (; count > 1; count /= 2) {
    for (int i = 0; i < count / 2; ++i) parts[i] = combine(parts[2 * i], parts[2 * i + 1]);
  }
}

/// Operation for Partials::each: widens members to double precision.
struct Widen {
  HIPRESS_LANES double operator()(float value) const { return value; }
  /// Widens a signed count in two's complement.
  HIPRESS_LANES std::uint64_t operator()(std::uint32_t count) const {
    return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(count)});
  }
};

/// Sum a + b, in fp32 within a tile and in double above. Adding 0 to the result turns -0 into 0.
struct Sum {
  template <class F>
  using Value = F;
  template <class F>
  HIPRESS_LANES static F identity() {
    return F{};
  }
  template <class F>
  HIPRESS_LANES static F combine(F a, F b) {
    return a + b;
  }
  /// True if a sum of finite values left the range of its type.
  HIPRESS_LANES static bool overflowed(float sum) {
    return !(sum >= -0x1.fffffep127f && sum <= 0x1.fffffep127f);
  }
  HIPRESS_LANES static bool overflowed(double) { return false; }
};

/// Exact sum a + b of whole numbers up to 2^20 in magnitude: 32 bits hold the sum of a tile's 1024.
struct WholeSum {
  template <class F>
  using Value = UnsignedLanes<F>;
  template <class F>
  HIPRESS_LANES static UnsignedLanes<F> identity() {
    return UnsignedLanes<F>{};
  }
  template <class U>
  HIPRESS_LANES static U combine(U a, U b) {
    return a + b;
  }
  template <class U>
  HIPRESS_LANES static bool overflowed(U) {
    return false;
  }
};

/// The smaller of two. The sign of a zero is unspecified: -0 == 0 here.
struct Minimum {
  template <class F>
  using Value = F;
  template <class F>
  HIPRESS_LANES static F identity() {
    return F{} + infinity();
  }
  template <class F>
  HIPRESS_LANES static F combine(F a, F b) {
    return smaller(b, a);
  }
  template <class F>
  HIPRESS_LANES static bool overflowed(F) {
    return false;
  }
};

struct Maximum {
  template <class F>
  using Value = F;
  template <class F>
  HIPRESS_LANES static F identity() {
    return F{} - infinity();
  }
  template <class F>
  HIPRESS_LANES static F combine(F a, F b) {
    return larger(b, a);
  }
  template <class F>
  HIPRESS_LANES static bool overflowed(F) {
    return false;
  }
};

/// Results of the reductions of some elements: one number per reduction and lane.
template <class F, class... Operations>
struct Partials;

template <class F>
struct Partials<F> {
  HIPRESS_LANES static Partials identity() { return {}; }
  HIPRESS_LANES Partials restricted(MaskLanes<F>) const { return {}; }
  HIPRESS_LANES bool overflowed() const { return false; }
  template <class G, class Function>
  HIPRESS_LANES Partials<G> each(Function) const {
    return {};
  }
  HIPRESS_LANES friend Partials combine(Partials, Partials) { return {}; }
};

template <class F, class Operation, class... Rest>
struct Partials<F, Operation, Rest...> {
  typename Operation::template Value<F> first;
  [[no_unique_address]] Partials<F, Rest...> rest;

  HIPRESS_LANES static Partials identity() {
    return {Operation::template identity<F>(), Partials<F, Rest...>::identity()};
  }
  /// Keeps the lanes in the mask; the others become the identity.
  HIPRESS_LANES Partials restricted(MaskLanes<F> to) const {
    return {select(to, first, Operation::template identity<F>()), rest.restricted(to)};
  }
  HIPRESS_LANES bool overflowed() const {
    return Operation::overflowed(first) || rest.overflowed();
  }
  template <class G, class Function>
  HIPRESS_LANES Partials<G, Operation, Rest...> each(Function function) const {
    return {function(first), rest.template each<G>(function)};
  }
  HIPRESS_LANES friend Partials combine(Partials a, Partials b) {
    return {Operation::combine(a.first, b.first), combine(a.rest, b.rest)};
  }
};

/// The result of reduction i.
template <int i, class F, class... Operations>
HIPRESS_LANES auto number(const Partials<F, Operations...>& partials) {
  if constexpr (i == 0) {
    return partials.first;
  } else {
    return number<i - 1>(partials.rest);
  }
}

}  // namespace hipress::kernels
