#pragma once

#include "costs/profile.hpp"
#include "io/yaml.hpp"

namespace hipress::costs {

/// Reads a share of a host's memory bandwidth, 0 to 1.
double read_share(const io::YamlNode& node);

/// Reads the map of link quantities that profiles and cluster files share (costs/README.md lists
/// its keys). What it does not say is taken from `defaults`, except that a bandwidth given alone
/// holds both ways.
LinkCosts read_link(const io::YamlNode& node, const LinkCosts& defaults);

}  // namespace hipress::costs
