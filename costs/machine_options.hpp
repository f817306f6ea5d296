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

/// Options of a tool on its machines, as given on the command line; empty or 0: not given.
struct MachineOptions {
  std::string machine = {};  ///< machine of the hosts: a file, or a shipped machine's name
  std::uint32_t hosts = 0;   ///< number of the machine's hosts
  std::uint32_t gpus = 0;    ///< total number of GPUs; 0: all GPUs of the hosts
  std::string library = {};  ///< library of the machine's collectives (default: nccl)
  std::string profile = {};  ///< a file, or a shipped profile's name
  std::string cluster = {};  ///< a file
  NodeCount node_count = NodeCount::kOne;  ///< rule if the caller gives a number, too
  /// Short forms of a cluster file's link.bandwidth, .latency and .overhead, gpus_per_node and
  /// gpu_link.bandwidth. They override the file.
  std::string bandwidth = {}, latency = {}, overhead = {};
  std::uint32_t gpus_per_node = 0;
  std::string gpu_bandwidth = {};
  /// Memory bandwidth to which kernels are scaled; kAsHardware: the profile's own.
  std::string scale_kernels = {};
  /// Substitutes for missing costs: "tern.pse=int4block" gives tern.pse the costs of int4block.
  std::vector<std::string> assumed_costs = {};
  /// Number of nodes on each host, for ranks that know their hosts; 0: the cluster's.
  std::uint32_t nodes_per_host = 0;

  /// True if a profile or a machine gives the costs of kernels.
  bool names_profile() const { return !profile.empty() || names_machine(); }
  /// True if a machine is given: here, or in the cluster's file.
  bool names_machine() const;
  /// True if any option but the profile describes the machines.
  bool names_cluster() const;
};
inline constexpr std::string_view kAsHardware = "hardware";

/// Default link between the GPUs of a node: NVLink within a machine of A100s, with the figures that
/// nccl-tests reach.
inline constexpr GpuLinkCosts kUsualGpuLink = {.overhead_s = 5e-6, .bandwidth = 250e9};

/// Profile and cluster of the options.
struct LoadedMachines {
  Profile profile;
  Cluster cluster;
  std::vector<std::string> diagnostics;  ///< messages to the user on assumptions and scaling
  std::vector<std::string> warnings;     ///< options without effect
};

/// Reads the given profile; without one, that of the machine's kernels, scaled to the machine's
/// memory bandwidth. Throws InputError for an unreadable file.
Profile read_costs(const MachineOptions& options);

/// Reads the profile (default: kDefaultProfile) and the cluster. The number of nodes is `nodes`; if
/// that is 0, the file's; if the file has none, `otherwise`. With a machine, every GPU is a node;
/// without a profile, the kernels are those that the machine names, scaled to its memory bandwidth.
/// InputError names the option or file whose value lacks a unit, is out of range, or contradicts a
/// different one.
LoadedMachines load(const MachineOptions& options, std::uint32_t nodes, std::uint32_t otherwise);

/// Like load(), with a profile that has already been read. Its kernels are not scaled.
LoadedMachines load(const MachineOptions& options, Profile profile, std::uint32_t nodes,
                    std::uint32_t otherwise);

/// Rates of the given machine for a job on `nodes` GPUs (0: the number in the options). `sharded`:
/// the optimizer's state is sharded over all of them. Unset without a machine.
std::optional<models::Rates> rates_of(const MachineOptions& options, std::uint32_t nodes,
                                      bool sharded);

/// Scales kernels to `memory_bandwidth`, in bytes per second. The time of every curve and stage
/// above its cost at size 0 is multiplied by measured bandwidth / `memory_bandwidth`. The cost at
/// size 0 is that of launches, and does not change.
void scale_kernels(double memory_bandwidth, Profile& profile);

}  // namespace hipress::costs
