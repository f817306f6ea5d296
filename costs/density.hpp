#pragma once

#include <optional>
#include <string>

#include "costs/profile.hpp"

namespace hipress::costs {

/// Rows of a sparsifier for the nearest densities below and above the requested one; all other
/// parameters are equal. If all densities lie on one side, both are the nearest row.
struct DensityRows {
  std::string below, above;
  double share = 0;       ///< interpolation weight, from 0 (`below`) to 1 (`above`)
  bool measured = false;  ///< both are this density's row: "dgc" for "dgc(rho=0.01)"

  const std::string& nearest() const { return share < 0.5 ? below : above; }
};

/// Rows for an algorithm; nullopt if it has no kernels::kDensity, or no row has its other
/// parameters.
std::optional<DensityRows> density_rows(const Profile& profile, const std::string& algorithm);

/// Interpolates linearly between two rows' costs.
CodecCosts between(const CodecCosts& below, const CodecCosts& above, double share);

}  // namespace hipress::costs
