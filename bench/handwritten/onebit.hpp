#pragma once

#include "kernels/frames/quantizer.hpp"

namespace hipress::bench::handwritten {

using namespace kernels;

/// One bit per element: v < 0. It decodes to the mean of the values with that sign. Seide et al.,
/// "1-bit stochastic gradient descent", 2014.
struct Onebit {
  static constexpr std::uint16_t kTag = 1;
  static constexpr int kMinPlanes = 1;
  static constexpr int kMaxPlanes = 1;
  static constexpr bool kErrorFeedback = true;
  static constexpr bool kCodesByValueAlone = true;
  static constexpr int kPasses = 1;
  static constexpr int kCodesAfter = 0;

  struct Scalars {
    double elements, non_negative, negative;
  };
  struct Wire {
    float non_negative, negative;
  };

  explicit Onebit(const double*) {}
  HIPRESS_LANES int planes() const { return 1; }
  HIPRESS_LANES Scalars begin(std::int64_t elements) const {
    return {static_cast<double>(elements), 0, 0};
  }

  struct Measure {
    template <class F>
    using Partial = Partials<F, Sum, Sum, WholeSum>;
    template <class F>
    HIPRESS_LANES Partial<F> of(F value, std::int64_t) const {
      using U = UnsignedLanes<F>;
      const MaskLanes<F> is_negative = less(value, F{});
      return {select(is_negative, F{}, value),
              {select(is_negative, value, F{}), {select(is_negative, U{} + 1u, U{}), {}}}};
    }
  };
  HIPRESS_LANES Measure measure(Pass<0>, const Scalars&, const DrawStream&) const { return {}; }
  HIPRESS_LANES void conclude(Pass<0>, const Measure::Partial<double>& found,
                              Scalars& scalars) const {
    const double negatives = static_cast<double>(number<2>(found));
    const double others = scalars.elements - negatives;
    scalars.non_negative = others > 0 ? number<0>(found) / others : 0;
    scalars.negative = negatives > 0 ? number<1>(found) / negatives : 0;
  }
  HIPRESS_LANES Wire wire(const Scalars& scalars) const {
    return {static_cast<float>(scalars.non_negative), static_cast<float>(scalars.negative)};
  }

  struct Coder {
    template <int kPlanes, class F>
    HIPRESS_LANES void code(F value, std::int64_t, MaskLanes<F> (&planes)[kPlanes]) const {
      planes[0] = less(value, F{});
    }
  };
  HIPRESS_LANES Coder coder(const Scalars&, const DrawStream&) const { return {}; }

  HIPRESS_LANES static bool finite(const Wire&) { return true; }  // by construction
  HIPRESS_LANES bool plausible(const Wire& wire) const {
    return is_finite(wire.non_negative) && is_finite(wire.negative);
  }
  struct Levels {
    Wire wire;
    HIPRESS_LANES float operator()(int code) const {
      return code == 0 ? wire.non_negative : wire.negative;
    }
  };
  HIPRESS_LANES Levels levels(const Wire& wire, std::int64_t) const { return {wire}; }
};

}  // namespace hipress::bench::handwritten
