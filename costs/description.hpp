#pragma once

#include <string>
#include <string_view>

#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "models/model.hpp"

/// Texts for reports that describe the inputs of a prediction.
namespace hipress::costs {

/// Default profile of the tools.
inline constexpr std::string_view kDefaultProfile = "sosp21";

/// Text that gives the reason for the default, and says how to get a better profile.
inline constexpr std::string_view kWhyDefault =
    "since no `profile` was given: take one for your GPU and network, such as h100-100g "
    "(estimated), or measure your machines with hipress-profile";

/// Bandwidth in network units, such as "25 Gbit/s".
std::string describe_bandwidth(double bytes_per_s);

/// Origin of a profile's numbers, from its `source`: "measured", "derived", "estimated",
/// "published", or else "of own making".
std::string_view origin_of(const Profile& profile);

/// The profile in use: "profile h100-400g (estimated)", with kWhyDefault if it was not `given`.
std::string describe_origin(const Profile& profile, bool given);

/// Sentence on the costs of an algorithm that has no row of its own: they are those of a different
/// algorithm ("tern.pse(b=4) is charged the cost of tern.pse(b=2)"), interpolated between two
/// densities, or estimated (costs/traffic.hpp). Empty if it has a row, or if no costs are known.
std::string foreign_costs(const Profile& profile, const std::string& algorithm);

/// Mix of computation in a prediction, such as "assumed mix gemm 46 %, attention 2 %". Empty if the
/// cluster does not distinguish classes, or the model has no computation.
std::string describe_mix(const Cluster& cluster, const models::Model& model);

/// Profile, nodes, links and compute time in one line: "profile v100-100g (derived), 8 nodes × 4
/// GPUs, links 25 Gbit/s + 20us latency + 20us overhead, GPUs 250 GB/s; compute 120ms (forward
/// 40ms)".
std::string describe_machines(const Profile& profile, const Cluster& cluster,
                              const models::Model& model);

}  // namespace hipress::costs
