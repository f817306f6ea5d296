#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "costs/profile.hpp"
#include "io/yaml.hpp"

namespace hipress::costs {

/// Duration in seconds under an optional key.
double duration_or(const io::YamlNode& node, std::string_view key, double otherwise);

/// Reason why a link's burst is invalid; empty if it is valid.
std::string complaint_about_burst(const LinkCosts& link);

/// Reads the costs of a link, whose keys profiles and cluster files share (docs/profiles.md). The
/// caller reads `bandwidth`. Missing keys are taken from `defaults`, but a new bandwidth also sets
/// bandwidth_both_ways and removes the burst.
LinkCosts read_link(const io::YamlNode& node, const LinkCosts& defaults,
                    std::optional<double> bandwidth);

/// Bandwidth of a link in a cluster file: its `bandwidth`, or its `rate` times the share that the
/// profile's link reaches of its rate. Unset if the map has neither key.
std::optional<double> bandwidth_in(const io::YamlNode& node, const Profile& profile);
/// Like bandwidth_in(), but the map must have one of the two keys.
double required_bandwidth(const io::YamlNode& node, const Profile& profile);

}  // namespace hipress::costs
