#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "costs/cluster.hpp"

/// Conversion of clusters between one and two levels. In two levels, a node has several GPUs: it
/// first sums gradients over its GPUs, then sends one message to each other node. In one level,
/// every GPU is a node. One level suits links within nodes that are not much faster than the links
/// between nodes.
namespace hipress::costs {

/// Makes every GPU a node: N·G nodes, G on each host. The nodes of a host are joined by the GPUs'
/// links and share the former node's link. Unset if nodes have one GPU, or if a cluster cannot
/// express the result: nodes share a host, the link has bursts, or there are more than kMaxNodes.
std::optional<Cluster> in_one_level(const Cluster& cluster);

/// Makes every host a node, and its former nodes the GPUs. Unset if hosts have one node each, or if
/// a cluster cannot express the result: nodes with several GPUs, no host_link, hosts with different
/// numbers of nodes, or nodes of a host that differ in speed.
std::optional<Cluster> in_two_levels(const Cluster& cluster);

/// The cluster's other form: in_one_level() or in_two_levels(). Unset if it has only one form.
std::optional<Cluster> in_other_levels(const Cluster& cluster);

/// Cluster in which every GPU is a node: `cluster` itself if nodes have one GPU, else
/// in_one_level(). Throws InputError if a cluster cannot express it.
Cluster of_gpus(const Cluster& cluster);

/// Sentence on the nodes of such a cluster.
std::string describe_levels(const Cluster& cluster);

/// Form of the cluster that has `nodes` nodes: `cluster` or in_other_levels(). `cluster` if neither
/// has.
Cluster with_nodes(const Cluster& cluster, std::uint32_t nodes);

}  // namespace hipress::costs
