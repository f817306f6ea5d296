#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "models/arithmetic.hpp"

namespace hipress::costs {

/// Command-line options that describe the machines; empty or 0 if not given.
struct MachineOptions {
  std::string machine = {};  ///< type of the hosts: a file, or a shipped machine's name
  std::uint32_t hosts = 0;   ///< number of the machine's hosts
  std::uint32_t gpus = 0;    ///< total number of GPUs; 0: all GPUs of the hosts
  std::string library = {};  ///< library of the machine's collectives (default: nccl)
  std::string profile = {};  ///< a file, or a shipped profile's name
  std::string cluster = {};  ///< a file
  NodeCount node_count = NodeCount::kOne;  ///< rule for a number of nodes in the cluster file
  /// Override a cluster file's link.bandwidth, .latency, .overhead, gpus_per_node,
  /// gpu_link.bandwidth.
  std::string bandwidth = {}, latency = {}, overhead = {};
  std::uint32_t gpus_per_node = 0;
  std::string gpu_bandwidth = {};
  /// Memory bandwidth to which kernels are scaled; kAsHardware: the profile's own.
  std::string scale_kernels = {};
  /// Costs to assume: "tern.pse=int4block" gives tern.pse the costs of int4block.
  std::vector<std::string> assumed_costs = {};
  /// Number of nodes on each host, for ranks that know their hosts; 0: the cluster's.
  std::uint32_t nodes_per_host = 0;

  /// True if the costs of kernels come from a given profile or machine.
  bool names_profile() const { return !profile.empty() || names_machine(); }
  /// True if a machine is given, here or in the cluster file.
  bool names_machine() const;
  /// True if an option other than the profile describes the machines.
  bool names_cluster() const;
};
inline constexpr std::string_view kAsHardware = "hardware";

/// Default link between the GPUs of a node: NVLink in a machine of A100s, with the figures that
/// nccl-tests reach.
inline constexpr GpuLinkCosts kUsualGpuLink = {.overhead_s = 5e-6, .bandwidth = 250e9};

/// Profile and cluster of the options.
struct LoadedMachines {
  Profile profile;
  Cluster cluster;
  std::vector<std::string> diagnostics;  ///< messages on assumptions and scaling
  std::vector<std::string> warnings;     ///< on options without effect
};

/// Reads the given profile; if none is given, the profile that the machine names for its kernels,
/// scaled to the machine's memory bandwidth. Throws InputError for an unreadable file.
Profile read_costs(const MachineOptions& options);

/// Reads the profile as read_costs() does (default: kDefaultProfile), and the cluster. The number
/// of nodes is `nodes`; if that is 0, that of the cluster file; if it has none, `otherwise`. With a
/// machine, every GPU is a node. Throws InputError that names an option or file whose value lacks a
/// unit, is out of range, or contradicts another value.
LoadedMachines load(const MachineOptions& options, std::uint32_t nodes, std::uint32_t otherwise);

/// Like load(), with a profile that has already been read. Its kernels are not scaled.
LoadedMachines load(const MachineOptions& options, Profile profile, std::uint32_t nodes,
                    std::uint32_t otherwise);

/// Rates of the given machine for a job on `nodes` GPUs (0: the number in the options). If
/// `sharded`, the optimizer's state is sharded over all of them. Unset if no machine is given.
std::optional<models::Rates> rates_of(const MachineOptions& options, std::uint32_t nodes,
                                      bool sharded);

/// Scales kernels to `memory_bandwidth`, in bytes per second. Costs at size 0 are those of
/// launches, and do not change. The time above them, of every curve and stage, is multiplied by
/// measured bandwidth / `memory_bandwidth`.
void scale_kernels(double memory_bandwidth, Profile& profile);

}  // namespace hipress::costs
