#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "costs/cluster.hpp"

/// The same machines with their GPUs at another level. Where a node has several GPUs, gradients can
/// be summed in it first, so that one message per node goes to the others (two levels), or every
/// GPU can be a node of its own (one level), which suits links in a node that are not much faster
/// than those between.
namespace hipress::costs {

/// Every GPU a node: N·G nodes, G on a host, which are joined by what joined the GPUs and share
/// what was their node's link. None where a node has one GPU, or where that cannot be said: nodes
/// that share a host, bursts, more nodes than a cluster may have.
std::optional<Cluster> in_one_level(const Cluster& cluster);

/// Every host a node with its former nodes for GPUs. None where hosts have one node each, or where
/// that cannot be said: nodes with several GPUs, hosts of different numbers or speeds of nodes, no
/// link within hosts.
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
