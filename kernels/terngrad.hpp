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

/// Stochastic rounding to 2^b levels between the slice's minimum and maximum, unbiased:
/// code q = clamp(floor((v - min) / gap + u), 0, 2^b - 1), gap = (max - min) / (2^b - 1), decodes
/// to min + q gap. After Wen et al., "TernGrad", 2017, in the form of CompLL's program.
class Terngrad {
 public:
  static constexpr std::string_view kName = "terngrad";
  static constexpr std::string_view kHelp =
      "b bits per element: unbiased stochastic rounding between the slice's minimum and maximum";
  static constexpr Parameter kParameterList[] = {
      {.name = "b", .value = 2, .least = 1, .most = 8, .help = "bits per element", .whole = true}};
  static constexpr std::span<const Parameter> kParameters = kParameterList;
  static constexpr std::uint8_t kTag = 3;
  static constexpr int kLeastPlanes = 1;
  static constexpr int kMostPlanes = 8;
  static constexpr bool kErrorFeedback = false;
  static constexpr bool kCodesNeedHeader = true;
  using Statistics = Range;

  explicit Terngrad(const std::map<std::string, double>& values)
      : planes_(static_cast<int>(values.at("b"))) {}

  HIPRESS_LANES int planes() const { return planes_; }

  /// first: minimum, second: maximum. Adding 0 makes -0 a 0, so that the order of equals does not
  /// show.
  HIPRESS_LANES Header header(const Statistics::Partial<double>& range, std::int64_t) const {
    Header header;
    header.first = static_cast<float>(range.least) + 0.0f;
    header.second = static_cast<float>(range.most) + 0.0f;
    return header;
  }
  HIPRESS_LANES bool plausible(const Header& header) const {
    return header.first >= -0x1.fffffep127f && header.second <= 0x1.fffffep127f &&
           header.first <= header.second;
  }
  /// In double, where max - min cannot overflow; rounded once.
  HIPRESS_LANES float level(const Header& header, int code) const {
    const double gap = (double{header.second} - double{header.first}) / top();
    return static_cast<float>(header.first + code * gap);
  }

  /// Works on values times a power of two, which is 1 except where max - min would overflow or its
  /// gap would be denormal; scaling the small ones is exact, and what scaling down loses is below
  /// 2^-149.
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
  HIPRESS_LANES Coder coder(const Header& header, const DrawStream& draws) const {
    const double range = double{header.second} - double{header.first};
    if (!(range > 0)) return {1, header.first, 1, 0, draws};  // constant: code 0 everywhere
    const float scale = range > 0x1p126 ? 0x1p-4f : range < 0x1p-100 ? 0x1p100f : 1.0f;
    const float gap = static_cast<float>(range * scale / top());
    return {scale, header.first * scale, gap, static_cast<float>(top()), draws};
  }

 private:
  HIPRESS_LANES int top() const { return (1 << planes_) - 1; }

  int planes_;
};

}  // namespace hipress::kernels
