#pragma once

#include <string>
#include <string_view>

#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "models/model.hpp"

/// What a prediction rests on, in words for reports.
namespace hipress::costs {

/// The profile that tools take when none is given.
inline constexpr std::string_view kDefaultProfile = "sosp21";

/// Why it is the default, and how to get a better one.
inline constexpr std::string_view kWhyDefault =
    "since no `profile` was given: take one for your GPU and network, such as h100-100g "
    "(estimated), or measure your machines with hipress-profile";

/// "25 Gbit/s", as networks are called.
std::string describe_bandwidth(double bytes_per_s);

/// How a profile's numbers came about, by its `source`: "measured", "derived", "estimated",
/// "published", or "of own making" where that says none of these.
std::string_view origin_of(const Profile& profile);

/// Which profile speaks, and why: "profile h100-400g (estimated)", or, where none was `given`, that
/// it is the default, and how to get a better one.
std::string describe_origin(const Profile& profile, bool given);

/// A sentence on whose costs an algorithm without its own is charged: those of another
/// ("tern.pse(b=4) is charged what tern.pse(b=2) costs"), between those of two densities, or
/// estimated_costs() (costs/traffic.hpp). Empty if it has its own, or if none are known.
std::string foreign_costs(const Profile& profile, const std::string& algorithm);

/// The mix of computation that a prediction rests on, and whether it was assumed: "assumed mix gemm
/// 46 %, attention 2 %"; empty where the cluster does not tell classes apart, or nothing computes.
std::string describe_mix(const Cluster& cluster, const models::Model& model);

/// Profile, nodes, links and compute time in one line: "profile v100-100g (derived), 8 nodes × 4
/// GPUs, links 25 Gbit/s + 20us latency + 20us overhead, GPUs 250 GB/s; compute 120ms (forward
/// 40ms)".
std::string describe_machines(const Profile& profile, const Cluster& cluster,
                              const models::Model& model);

}  // namespace hipress::costs
