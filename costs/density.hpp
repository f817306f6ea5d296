#pragma once

#include <optional>
#include <string>

#include "costs/profile.hpp"

namespace hipress::costs {

/// The rows of a profile between which a sparsifier's costs lie that it has no row for: those of
/// the nearest densities below and above with the same other parameters.
struct DensityRows {
  std::string below, above;  ///< one row twice, if all others are farther on that side, or on it
  double share = 0;          ///< of the way from `below` to `above`
  bool measured = false;     ///< one row, of this very density: "dgc" of "dgc(rho=0.01)"

  const std::string& nearest() const { return share < 0.5 ? below : above; }
};

/// None for an algorithm without a density (kernels::kDensity), and where no row has the same other
/// parameters.
std::optional<DensityRows> density_rows(const Profile& profile, const std::string& algorithm);

/// Costs in proportion between two.
CodecCosts between(const CodecCosts& below, const CodecCosts& above, double share);

}  // namespace hipress::costs
