#pragma once

#include <string>
#include <string_view>

#include "costs/profile.hpp"
#include "io/yaml.hpp"

namespace hipress::costs {

/// The duration in seconds under a key that need not be there.
double duration_or(const io::YamlNode& node, std::string_view key, double otherwise);

/// Why a link cannot have its burst at its bandwidth; empty if it can.
std::string complaint_about_burst(const LinkCosts& link);

/// Reads the map of link quantities that profiles and cluster files share (docs/profiles.md lists
/// its keys). A key that the map lacks is taken from `defaults`, except that `bandwidth` without
/// `bandwidth_both_ways` sets both.
LinkCosts read_link(const io::YamlNode& node, const LinkCosts& defaults);

}  // namespace hipress::costs
