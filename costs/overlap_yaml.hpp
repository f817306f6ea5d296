#pragma once

#include "costs/profile.hpp"
#include "io/yaml.hpp"

namespace hipress::costs {

/// Reads `compute_codec`, `compute_transfer` and `codec_transfer`, each 1 to 8; what is not there
/// is taken from `fallback`.
OverlapFactors read_overlap(const io::YamlNode& node, const OverlapFactors& fallback);

}  // namespace hipress::costs
