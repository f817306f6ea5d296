#pragma once

#include "kernels/frames/quantizer.hpp"

namespace hipress::bench::handwritten {

using namespace kernels;

/// Unbiased stochastic rounding to 2^b levels between the slice's minimum and maximum: the code q =
/// clamp(floor((v - min) / gap + u), 0, 2^b - 1), where gap = (max - min) / (2^b - 1), decodes to
/// min + q gap. After Wen et al., "TernGrad", 2017, in the form of CompLL's program.
struct Terngrad {
  static constexpr std::uint16_t kTag = 3;
  static constexpr int kMinPlanes = 1;
  static constexpr int kMaxPlanes = 8;
  static constexpr bool kErrorFeedback = false;
  static constexpr bool kCodesByValueAlone = false;
  static constexpr int kPasses = 1;
  static constexpr int kCodesAfter = 1;

  int bits;

  struct Scalars {
    float least, most;
  };
  using Wire = Scalars;

  explicit Terngrad(const double* values) : bits(static_cast<int>(values[0])) {}
  HIPRESS_LANES int planes() const { return bits; }
  HIPRESS_LANES Scalars begin(std::int64_t) const { return {0, 0}; }

  struct Measure {
    template <class F>
    using Partial = Partials<F, Minimum, Maximum>;
    template <class F>
    HIPRESS_LANES Partial<F> of(F value, std::int64_t) const {
      return {value, {value, {}}};
    }
  };
  HIPRESS_LANES Measure measure(Pass<0>, const Scalars&, const DrawStream&) const { return {}; }
  /// Adding 0 turns -0 into 0. The result then does not depend on the order of values.
  HIPRESS_LANES void conclude(Pass<0>, const Measure::Partial<double>& found,
                              Scalars& scalars) const {
    scalars.least = static_cast<float>(number<0>(found)) + 0.0f;
    scalars.most = static_cast<float>(number<1>(found)) + 0.0f;
  }
  HIPRESS_LANES Wire wire(const Scalars& scalars) const { return scalars; }

  /// Codes values times `scale`, a power of two. It is 1 unless max - min would overflow or the gap
  /// would be denormal. Scaling up is exact; scaling down changes a value by less than 2^-149.
  struct Coder {
    float scale, least, gap, top;
    DrawStream draws;
    template <int kPlanes, class F>
    HIPRESS_LANES void code(F value, std::int64_t element, MaskLanes<F> (&planes)[kPlanes]) const {
      const F position = (value * scale - least) / gap;
      const F rounded = position + draw_uniform<F>(draws, element);
      const UnsignedLanes<F> code = truncate(smaller(rounded, broadcast<F>(top)));
      for (int p = 0; p < kPlanes; ++p) planes[p] = has_bit(code, 1u << p);
    }
  };
  HIPRESS_LANES Coder coder(const Scalars& scalars, const DrawStream& draws) const {
    const double range = double{scalars.most} - double{scalars.least};
    if (!(range > 0))
      return {1, scalars.least, 1, 0, draws};  // constant slice: every element has code 0
    const float scale = range > 0x1p126 ? 0x1p-4f : range < 0x1p-100 ? 0x1p100f : 1.0f;
    const float gap = static_cast<float>(range * scale / ((1 << bits) - 1));
    return {scale, scalars.least * scale, gap, static_cast<float>((1 << bits) - 1), draws};
  }

  HIPRESS_LANES static bool finite(const Wire&) { return true; }  // by construction
  HIPRESS_LANES bool plausible(const Wire& wire) const {
    return is_finite(wire.least) && is_finite(wire.most) && wire.least <= wire.most;
  }
  struct Levels {
    double least, gap;
    HIPRESS_LANES float operator()(int code) const {
      return static_cast<float>(least + code * gap);
    }
  };
  /// Levels are computed in double, where max - min cannot overflow, and rounded once.
  HIPRESS_LANES Levels levels(const Wire& wire, std::int64_t) const {
    return {wire.least, (double{wire.most} - double{wire.least}) / ((1 << bits) - 1)};
  }
};

}  // namespace hipress::bench::handwritten
