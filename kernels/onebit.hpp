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

/// One bit per element, v < 0; it decodes to the mean of the values of that sign.
/// Seide et al., "1-bit stochastic gradient descent", 2014.
class Onebit {
 public:
  static constexpr std::string_view kName = "onebit";
  static constexpr std::string_view kHelp =
      "1 bit per element: the sign; decodes to the mean of that sign's values";
  static constexpr std::span<const Parameter> kParameters = {};
  static constexpr std::uint8_t kTag = 1;
  static constexpr int kLeastPlanes = 1;
  static constexpr int kMostPlanes = 1;
  static constexpr bool kErrorFeedback = true;
  static constexpr bool kCodesNeedHeader = false;
  using Statistics = SignSums;

  explicit Onebit(const std::map<std::string, double>& /*values*/) {}

  HIPRESS_LANES int planes() const { return 1; }

  /// first: mean of the non-negative values, second: of the negative ones; 0 where there are none.
  HIPRESS_LANES Header header(const Statistics::Partial<double>& sums,
                              std::int64_t elements) const {
    const std::int64_t negatives = static_cast<std::int64_t>(sums.negatives);
    Header header;
    header.first = mean(sums.non_negative, elements - negatives);
    header.second = mean(sums.negative, negatives);
    return header;
  }
  HIPRESS_LANES bool plausible(const Header& header) const {
    return header.first >= 0 && header.first <= 0x1.fffffep127f && header.second <= 0 &&
           header.second >= -0x1.fffffep127f;
  }
  HIPRESS_LANES float level(const Header& header, int code) const {
    return code == 0 ? header.first : header.second;
  }

  struct Coder {
    template <int kPlanes, class F>
    HIPRESS_LANES void code(F value, std::int64_t /*element*/,
                            MaskLanes<F> (&planes)[kPlanes]) const {
      planes[0] = less(value, F{});
    }
  };
  HIPRESS_LANES Coder coder(const Header&, const DrawStream&) const { return {}; }

 private:
  HIPRESS_LANES static float mean(double sum, std::int64_t count) {
    return count > 0 ? static_cast<float>(sum / static_cast<double>(count)) : 0.0f;
  }
};

}  // namespace hipress::kernels
