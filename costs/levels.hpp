#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "costs/cluster.hpp"

/// Conversion of clusters between one and two levels. In two levels, a node has several GPUs: it
/// first sums gradients over them, and then exchanges messages with other nodes. In one level,
/// every GPU is a node. One level suits GPU links that are not much faster than the network.
namespace hipress::costs {

/// Makes every GPU a node: N·G nodes, G on each host. The nodes of a host are joined by the GPUs'
/// links, and share the former node's link. Unset if nodes have one GPU, or if a Cluster cannot
/// express the result: nodes share a host, the link has bursts, or there are more than kMaxNodes.
std::optional<Cluster> in_one_level(const Cluster& cluster);

/// Makes every host a node, and its former nodes the node's GPUs. Unset if hosts have one node
/// each, or if a Cluster cannot express the result: nodes have several GPUs, there is no host_link,
/// hosts have different numbers of nodes, or nodes of a host differ in speed.
std::optional<Cluster> in_two_levels(const Cluster& cluster);

/// The cluster's other form: in_one_level() or in_two_levels(). Unset if it has only one form.
std::optional<Cluster> in_other_levels(const Cluster& cluster);

/// Cluster in which every GPU is a node: `cluster` itself if nodes have one GPU, else
/// in_one_level(). Throws InputError if that is unset.
Cluster of_gpus(const Cluster& cluster);

/// Sentence that says what the nodes of a plan are.
std::string describe_levels(const Cluster& cluster);

/// in_other_levels() if that has `nodes` nodes and `cluster` does not, else `cluster`.
Cluster with_nodes(const Cluster& cluster, std::uint32_t nodes);

}  // namespace hipress::costs
