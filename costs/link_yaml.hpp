#pragma once

#include "costs/profile.hpp"
#include "io/yaml.hpp"

namespace hipress::costs {

/// Reads the map of link quantities that profiles and cluster files share (costs/README.md lists
/// its keys). What it does not say is taken from `defaults`, except that a bandwidth given alone
/// holds both ways.
LinkCosts read_link(const io::YamlNode& node, const LinkCosts& defaults);

}  // namespace hipress::costs
