#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "costs/profile.hpp"
#include "io/yaml.hpp"

namespace hipress::costs {

/// Duration in seconds under an optional key.
double duration_or(const io::YamlNode& node, std::string_view key, double otherwise);

/// Reason why a link's burst is invalid at its bandwidth; empty if it is valid.
std::string complaint_about_burst(const LinkCosts& link);

/// Reads the map of link quantities that profiles and cluster files share (docs/profiles.md lists
/// its keys). The caller reads `bandwidth`. Missing keys are taken from `defaults`, but a new
/// bandwidth also applies to both directions at a time, and removes the burst.
LinkCosts read_link(const io::YamlNode& node, const LinkCosts& defaults,
                    std::optional<double> bandwidth);

/// Bandwidth of a link in a cluster file: its `bandwidth`, or its `rate` times the share of its own
/// rate that the profile's link reaches. Empty if the map has neither key.
std::optional<double> bandwidth_in(const io::YamlNode& node, const Profile& profile);
/// Like bandwidth_in(), for a map that must have one of the two keys.
double required_bandwidth(const io::YamlNode& node, const Profile& profile);

}  // namespace hipress::costs
