#pragma once

#include "kernels/codec/item.hpp"
#include "kernels/codec/lanes.hpp"
#include "kernels/codec/message.hpp"

/// Counter-based random numbers. The draw of an element is a pure function of (seed, step, node,
/// gradient, role, global element index). It needs no state, is the same on every device and for
/// every partitioning, and no two nodes share one.
///
/// A draw takes two steps. The key of a slice's stream is made once, by chaining the fields through
/// the finaliser of SplitMix64 (Steele, Lea, Flood 2014, with Stafford's "variant 13" constants).
/// Each draw then mixes the element's index in 32 bits: two multiplications, by 21f0aaad and
/// d35a2d97, and shifts by 16, 15 and 15. Of mixers of that shape it has the lowest avalanche bias
/// found by Wellons' search ("hash prospector", public domain). The last shift is left out, because
/// it changes only bits below the upper 15. Half of the key is mixed in before the first
/// multiplication, the other half between the two, so that streams with different keys are not
/// shifted copies of each other. Ten-round Philox takes about five times as many instructions. The
/// tests check the statistics that rounding needs: draws are uniform, and those of neighbours,
/// nodes and steps are uncorrelated.
namespace hipress::kernels {

/// The draws of one slice.
struct DrawStream {
  std::uint32_t first_key = 0;
  std::uint32_t second_key = 0;
  std::uint64_t first_element = 0;  ///< index in the gradient of the slice's element 0
  bool same_high = false;           ///< true if all elements' indices share their upper 32 bits
};

HIPRESS_LANES std::uint64_t mix_64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The second key, which depends on the upper 32 bits of `index`.
HIPRESS_LANES std::uint32_t second_key_of(const DrawStream& stream, std::uint64_t index) {
  return stream.second_key + static_cast<std::uint32_t>(index >> 32) * 0x9e3779b9u;
}

/// The stream of a slice of `elements` elements.
HIPRESS_LANES DrawStream draw_stream(const DrawKey& key, std::int64_t elements) {
  std::uint64_t mixed = mix_64(key.seed + 0x9e3779b97f4a7c15u);
  mixed = mix_64(mixed ^ key.step) + 0x9e3779b97f4a7c15u;
  mixed = mix_64(mixed ^ ((std::uint64_t{key.node} << 32) | key.gradient)) + 0x9e3779b97f4a7c15u;
  mixed = mix_64(mixed ^ key.role);
  const auto first = static_cast<std::uint64_t>(key.first_element);
  const std::uint64_t last = first + static_cast<std::uint64_t>(elements) + kWordElements;
  return {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32), first,
          first >> 32 == last >> 32};
}

/// Stream of draws at place `site` of an algorithm; each place has a different one.
HIPRESS_LANES DrawStream stream_of_site(DrawStream stream, std::uint32_t site) {
  if (site == 0) return stream;
  const std::uint64_t mixed =
      mix_64(((std::uint64_t{stream.second_key} << 32) | stream.first_key) + site);
  stream.first_key = static_cast<std::uint32_t>(mixed);
  stream.second_key = static_cast<std::uint32_t>(mixed >> 32);
  return stream;
}

/// Draws 32 random bits per lane; the first lane's element has index `element` in the slice.
template <class F>
HIPRESS_LANES UnsignedLanes<F> draw(const DrawStream& stream, std::int64_t element) {
  const std::uint64_t index = stream.first_element + static_cast<std::uint64_t>(element);
  const UnsignedLanes<F> low =
      broadcast_bits<F>(static_cast<std::uint32_t>(index)) + lane_numbers<F>();
  UnsignedLanes<F> second_key =
      broadcast_bits<F>(second_key_of(stream, stream.same_high ? stream.first_element : index));
  if (!stream.same_high) {
    // Lanes past an overflow of the lower half belong to the next 2^32 elements.
    second_key = select(less(low, broadcast_bits<F>(static_cast<std::uint32_t>(index))),
                        broadcast_bits<F>(second_key_of(stream, index + (std::uint64_t{1} << 32))),
                        second_key);
  }
  UnsignedLanes<F> x = low ^ stream.first_key;
  x = (x ^ (x >> 16)) * 0x21f0aaadu;
  x = x ^ second_key;
  return (x ^ (x >> 15)) * 0xd35a2d97u;
}

/// Draws a uniform number in [0, 1), a multiple of 2^-24, per lane.
template <class F>
HIPRESS_LANES F draw_uniform(const DrawStream& stream, std::int64_t element) {
  return to_float(draw<F>(stream, element) >> 8) * 0x1p-24f;
}

/// Sum of `value` and draw_uniform(…), fused where available; the product is exact.
template <class F>
HIPRESS_LANES F plus_uniform(F value, const DrawStream& stream, std::int64_t element) {
  return plus_scaled(value, to_float(draw<F>(stream, element) >> 8), 0x1p-24f);
}

}  // namespace hipress::kernels
