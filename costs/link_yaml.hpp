#pragma once

#include <optional>
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
/// its keys); `bandwidth` is the caller's to read. What the map lacks is taken from `defaults`,
/// except that a bandwidth alone is that of both ways, and without a burst.
LinkCosts read_link(const io::YamlNode& node, const LinkCosts& defaults,
                    std::optional<double> bandwidth);

/// What a link of a cluster file carries: its `bandwidth`, or of its `rate` the share that the
/// profile's link carries of its own. None: the map has neither key.
std::optional<double> bandwidth_in(const io::YamlNode& node, const Profile& profile);
/// The same of a map that must have one of them.
double required_bandwidth(const io::YamlNode& node, const Profile& profile);

}  // namespace hipress::costs
