#pragma once

#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/codec/lanes.hpp"
#include "kernels/codec/message.hpp"

/// Input values of an encoder, before any algorithm: v = x / divisor, plus the residual if there is
/// one.
namespace hipress::kernels {

inline constexpr float kLargest = 0x1.fffffep127f;

/// Rule that computes the values v to encode from a slice's inputs and residual.
///
/// v saturates at the largest finite number, so finite inputs and residuals never produce an
/// infinity. Only the gradient itself can be non-finite, and a residual always stays finite.
struct ValueRule {
  Divisor divisor;
  bool adds_residual = false;

  HIPRESS_LANES static ValueRule of(const EncodeItem& item) {
    return {Divisor::of(item.divisor), item.state.data != nullptr};
  }

  template <class F>
  HIPRESS_LANES F operator()(F input, F residual) const {
    if (!adds_residual) return divisor(input);
    const F value = divisor(input) + residual;
    return larger(broadcast<F>(-kLargest), smaller(broadcast<F>(kLargest), value));
  }
};

/// Sets the top bit if and only if the input is infinite or NaN. Its exponent is then all ones, so
/// adding one to the exponent carries into the top bit. Flags are combined with |.
template <class F>
HIPRESS_LANES UnsignedLanes<F> non_finite_flag(F input) {
  return (as_bits(input) & 0x7fffffffu) + 0x00800000u;
}

/// Level of a code: `levels` indexed by the code whose bit p is planes[p].
template <int kPlanes, class F>
HIPRESS_LANES F level_of(const MaskLanes<F>* planes, const float* levels) {
  if constexpr (kPlanes == 0) {
    return broadcast<F>(levels[0]);
  } else {
    return select(planes[kPlanes - 1],
                  level_of<kPlanes - 1, F>(planes, levels + (1 << (kPlanes - 1))),
                  level_of<kPlanes - 1, F>(planes, levels));
  }
}

/// Level of a code from packed planes, for the lanes whose bits begin at bit `shift`.
template <int kPlanes, class F>
HIPRESS_LANES F level_of_bits(const std::uint32_t* planes, int shift, const float* levels) {
  if constexpr (kPlanes == 1) {
    return select_by_bits(planes[0] >> shift, broadcast<F>(levels[1]), broadcast<F>(levels[0]));
  } else if constexpr (kPlanes == 2) {
    const std::uint32_t low = planes[0] >> shift;
    const F upper = select_by_bits(low, broadcast<F>(levels[3]), broadcast<F>(levels[2]));
    const F lower = select_by_bits(low, broadcast<F>(levels[1]), broadcast<F>(levels[0]));
    return select_by_bits(planes[1] >> shift, upper, lower);
  } else {
    UnsignedLanes<F> code = {};
    for (int p = 0; p < kPlanes; ++p) {
      code = code |
             select_by_bits(planes[p] >> shift, broadcast_bits<F>(1u << p), broadcast_bits<F>(0));
    }
    return look_up<kPlanes>(levels, code);
  }
}

}  // namespace hipress::kernels
