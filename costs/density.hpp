#pragma once

#include <optional>
#include <string>

#include "costs/profile.hpp"

namespace hipress::costs {

/// A profile's rows of a sparsifier at the nearest densities below and above one, with the same
/// other parameters. Where all densities lie on one side, both are the nearest row.
struct DensityRows {
  std::string below, above;
  double share = 0;       ///< of the way from `below` to `above`
  bool measured = false;  ///< both are the row of this very density: "dgc" for "dgc(rho=0.01)"

  const std::string& nearest() const { return share < 0.5 ? below : above; }
};

/// None for an algorithm without a density (kernels::kDensity), and where no row has the same other
/// parameters.
std::optional<DensityRows> density_rows(const Profile& profile, const std::string& algorithm);

/// Costs in proportion between two.
CodecCosts between(const CodecCosts& below, const CodecCosts& above, double share);

}  // namespace hipress::costs
