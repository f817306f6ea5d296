#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "kernels/codec.hpp"
#include "kernels/draws.hpp"
#include "kernels/message.hpp"
#include "kernels/reduction.hpp"

namespace hipress::kernels {

/// Threshold quantisation: +tau where v >= tau, -tau where v <= -tau, else 0.
/// Strom, "Scalable distributed DNN training using commodity GPU cloud computing", 2015.
class Tbq {
 public:
  static constexpr std::string_view kName = "tbq";
  static constexpr std::string_view kHelp =
      "2 bits per element: +tau, -tau or 0, by comparison with the threshold tau";
  static constexpr Parameter kParameterList[] = {
      {"tau", 0.5, 1e-30, 1e30, "threshold, and the magnitude that is sent"}};
  static constexpr std::span<const Parameter> kParameters = kParameterList;
  static constexpr std::uint8_t kTag = 2;
  static constexpr int kLeastPlanes = 2;
  static constexpr int kMostPlanes = 2;
  static constexpr bool kErrorFeedback = true;
  static constexpr bool kCodesNeedHeader = false;
  using Statistics = NoStatistics;

  explicit Tbq(const std::map<std::string, double>& values)
      : tau_(static_cast<float>(values.at("tau"))) {}

  HIPRESS_LANES int planes() const { return 2; }

  /// first: tau.
  HIPRESS_LANES Header header(const Statistics::Partial<double>&, std::int64_t) const {
    Header header;
    header.first = tau_;
    return header;
  }
  HIPRESS_LANES bool plausible(const Header& header) const {
    return header.first > 0 && header.first <= 0x1.fffffep127f;
  }
  /// Bit 0 says +tau, bit 1 -tau; no encoder sets both.
  HIPRESS_LANES float level(const Header& header, int code) const {
    return code == 1 ? header.first : code == 2 ? -header.first : 0.0f;
  }

  struct Coder {
    float tau;
    template <int kPlanes, class F>
    HIPRESS_LANES void code(F value, std::int64_t /*element*/,
                            MaskLanes<F> (&planes)[kPlanes]) const {
      planes[0] = at_least(value, broadcast<F>(tau));
      planes[1] = at_least(broadcast<F>(-tau), value);
    }
  };
  HIPRESS_LANES Coder coder(const Header&, const DrawStream&) const { return {tau_}; }

 private:
  float tau_;
};

}  // namespace hipress::kernels
