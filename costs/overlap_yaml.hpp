#pragma once

#include "costs/profile.hpp"
#include "io/yaml.hpp"

namespace hipress::costs {

/// Reads either the constants `compute_codec`, `compute_transfer` and `codec_transfer`, or the
/// matrix: `classes` with a row for every class of computation, `codec_beside_transfer` and
/// `transfer_beside_codec`. Each factor is 1 to 8. Missing constants are taken from `fallback`. If
/// `fallback` has a matrix, a constant in the file replaces all of the matrix entries that the
/// constant stands for (set_constant()). A matrix in the file must be complete.
OverlapFactors read_overlap(const io::YamlNode& node, const OverlapFactors& fallback);

}  // namespace hipress::costs
