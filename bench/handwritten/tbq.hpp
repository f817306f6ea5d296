#pragma once

#include "kernels/frames/quantizer.hpp"

namespace hipress::bench::handwritten {

using namespace kernels;

/// Threshold quantisation: +tau where v >= tau, -tau where v <= -tau, else 0.
/// Strom, "Scalable distributed DNN training using commodity GPU cloud computing", 2015.
struct Tbq {
  static constexpr std::uint16_t kTag = 2;
  static constexpr int kMinPlanes = 2;
  static constexpr int kMaxPlanes = 2;
  static constexpr bool kErrorFeedback = true;
  static constexpr bool kCodesByValueAlone = true;
  static constexpr int kPasses = 1;
  static constexpr int kCodesAfter = 0;

  float tau;

  struct Scalars {};
  struct Wire {};

  explicit Tbq(const double* values) : tau(static_cast<float>(values[0])) {}
  HIPRESS_LANES int planes() const { return 2; }
  HIPRESS_LANES Scalars begin(std::int64_t) const { return {}; }

  struct Measure {
    template <class F>
    using Partial = Partials<F>;
    template <class F>
    HIPRESS_LANES Partial<F> of(F, std::int64_t) const {
      return {};
    }
  };
  HIPRESS_LANES Measure measure(Pass<0>, const Scalars&, const DrawStream&) const { return {}; }
  HIPRESS_LANES void conclude(Pass<0>, const Measure::Partial<double>&, Scalars&) const {}
  HIPRESS_LANES Wire wire(const Scalars&) const { return {}; }

  struct Coder {
    float tau;
    template <int kPlanes, class F>
    HIPRESS_LANES void code(F value, std::int64_t, MaskLanes<F> (&planes)[kPlanes]) const {
      planes[0] = at_least(value, broadcast<F>(tau));
      planes[1] = at_least(broadcast<F>(-tau), value);
    }
  };
  HIPRESS_LANES Coder coder(const Scalars&, const DrawStream&) const { return {tau}; }

  HIPRESS_LANES static bool finite(const Wire&) { return true; }
  HIPRESS_LANES bool plausible(const Wire&) const { return true; }
  struct Levels {
    float tau;
    HIPRESS_LANES float operator()(int code) const {
      return code == 1 ? tau : code == 2 ? -tau : 0.0f;
    }
  };
  HIPRESS_LANES Levels levels(const Wire&, std::int64_t) const { return {tau}; }
};

}  // namespace hipress::bench::handwritten
