#pragma once

#include "costs/profile.hpp"
#include "io/yaml.hpp"

namespace hipress::costs {

/// Reads either the constants `compute_codec`, `compute_transfer` and `codec_transfer`, or the
/// matrix: `classes` with a row for every class of computation, `codec_beside_transfer` and
/// `transfer_beside_codec`; each factor is 1 to 8. A constant that is not there is taken from
/// `fallback`; if that has a matrix, a constant that is there stands for all of its entries
/// (set_constant()). A matrix must be whole.
OverlapFactors read_overlap(const io::YamlNode& node, const OverlapFactors& fallback);

}  // namespace hipress::costs
