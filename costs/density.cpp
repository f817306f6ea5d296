#include "costs/density.hpp"

#include <fmt/format.h>

#include <optional>

#include "costs/description.hpp"
#include "io/error.hpp"
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

CodecCosts between(const CodecCosts& a, const CodecCosts& b, double share) {
  CodecCosts costs = a;
  costs.encode = between(a.encode, b.encode, share);
  costs.decode = between(a.decode, b.decode, share);
  costs.decode_add = between(a.decode_add, b.decode_add, share);
  costs.encode_factor_quotients += share * (b.encode_factor_quotients - a.encode_factor_quotients);
  return costs;
}

}  // namespace

std::string add_costs_of_density(Profile& profile, const std::string& algorithm) {
  const std::optional<double> density = density_of(algorithm);
  if (!density || profile.codecs.contains(algorithm)) return {};
  const std::string others = kernels::with_parameter(algorithm, kernels::kDensity, {});
  std::optional<Row> below, above;
  for (const auto& [name, costs] : profile.codecs) {
    const std::optional<double> measured = density_of(name);
    if (!measured || kernels::with_parameter(name, kernels::kDensity, {}) != others) continue;
    if (*measured <= *density && (!below || *measured > below->density)) below = {name, *measured};
    if (*measured >= *density && (!above || *measured < above->density)) above = {name, *measured};
  }
  if (!below && !above) return {};
  if (below && above && below->density < above->density) {
    const double share = (*density - below->density) / (above->density - below->density);
    const CodecCosts costs =
        between(profile.codecs.at(below->name), profile.codecs.at(above->name), share);
    profile.codecs.emplace(algorithm, costs);
    return fmt::format(
        "{} is charged what lies between {} and {}, which profile {} has; hipress-profile "
        "--algorithm {} measures it",
        algorithm, below->name, above->name, profile.name, io::quote(algorithm));
  }
  const Row& nearest = below ? *below : *above;
  const std::string diagnostic = foreign_costs(profile, algorithm, nearest.name);
  const CodecCosts costs = profile.codecs.at(nearest.name);
  profile.codecs.emplace(algorithm, costs);
  return nearest.density == *density ? std::string() : diagnostic;
}

}  // namespace hipress::costs
