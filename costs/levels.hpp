#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "costs/cluster.hpp"

/// The same machines with their GPUs at another level. Nodes with several GPUs allow two levels:
/// each node sums gradients over its GPUs first, and one message per node goes to the others. In
/// one level, every GPU is a node of its own. One level suits links within nodes that are not much
/// faster than the links between nodes.
namespace hipress::costs {

/// Every GPU becomes a node: N·G nodes, G on each host. The nodes of a host are joined by the links
/// of the GPUs and share the former node's link. None where a node has one GPU, or where a cluster
/// cannot say it: nodes that share a host, bursts, more nodes than a cluster may have.
std::optional<Cluster> in_one_level(const Cluster& cluster);

/// Every host becomes a node, and its former nodes become the GPUs. None where hosts have one node
/// each, or where a cluster cannot say it: nodes with several GPUs, no link within hosts, hosts
/// with different numbers of nodes, or a host whose nodes differ in speed.
std::optional<Cluster> in_two_levels(const Cluster& cluster);

/// The other of both, where there is one.
std::optional<Cluster> in_other_levels(const Cluster& cluster);

/// A cluster in which every GPU is a node: the same where each node has one, else in_one_level().
/// InputError where that cannot be said.
Cluster of_gpus(const Cluster& cluster);

/// A sentence about such a cluster: what its nodes are.
std::string describe_levels(const Cluster& cluster);

/// The one of both that has so many nodes; the cluster itself where neither has.
Cluster with_nodes(const Cluster& cluster, std::uint32_t nodes);

}  // namespace hipress::costs
