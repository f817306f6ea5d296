#include "costs/density.hpp"

#include "kernels/codec/algorithm_list.hpp"
#include "kernels/codec/codec.hpp"

namespace hipress::costs {
namespace {

struct Row {
  std::string name;
  double density = 0;
};

std::optional<double> density_of(const std::string& algorithm) {
  return kernels::parameter_value(algorithm, kernels::kDensity);
}

}  // namespace

std::optional<DensityRows> density_rows(const Profile& profile, const std::string& algorithm) {
  const std::optional<double> density = density_of(algorithm);
  if (!density) return std::nullopt;
  const std::string others = kernels::with_parameter(algorithm, kernels::kDensity, {});
  std::optional<Row> below, above;
  for (const auto& [name, costs] : profile.codecs) {
    const std::optional<double> of_row = density_of(name);
    if (!of_row || kernels::with_parameter(name, kernels::kDensity, {}) != others) continue;
    if (*of_row <= *density && (!below || *of_row > below->density)) below = {name, *of_row};
    if (*of_row >= *density && (!above || *of_row < above->density)) above = {name, *of_row};
  }
  if (!below && !above) return std::nullopt;
  if (!below) below = above;
  if (!above) above = below;
  DensityRows rows = {.below = below->name, .above = above->name};
  if (above->density > below->density) {
    rows.share = (*density - below->density) / (above->density - below->density);
  } else {
    rows.measured = below->density == *density;
  }
  return rows;
}

CodecCosts between(const CodecCosts& below, const CodecCosts& above, double share) {
  CodecCosts costs = below;
  costs.encode = between(below.encode, above.encode, share);
  costs.decode = between(below.decode, above.decode, share);
  costs.decode_add = between(below.decode_add, above.decode_add, share);
  costs.encode_factor_quotients +=
      share * (above.encode_factor_quotients - below.encode_factor_quotients);
  return costs;
}

}  // namespace hipress::costs
