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

/// The machines that a tool's command line names, as it was given; empty and 0: not given.
struct MachineOptions {
  std::string machine = {};                ///< a file or a shipped machine's name: hosts of GPUs
  std::uint32_t hosts = 0;                 ///< of the machine
  std::uint32_t gpus = 0;                  ///< of all of its hosts together; 0: all that they have
  std::string profile = {};                ///< a file or a shipped profile's name
  std::string cluster = {};                ///< a file
  NodeCount node_count = NodeCount::kOne;  ///< of the file and of who asks
  /// Short forms of a cluster file's link.bandwidth, .latency and .overhead, gpus_per_node and
  /// gpu_link.bandwidth. They go before what the file says.
  std::string bandwidth = {}, latency = {}, overhead = {};
  std::uint32_t gpus_per_node = 0;
  std::string gpu_bandwidth = {};
  /// The memory bandwidth that kernels are scaled to; kAsHardware: the profile's own.
  std::string scale_kernels = {};
  /// Algorithms that the profile has no costs of, and whose they are charged: "tern.pse=int4block".
  std::vector<std::string> assumed_costs = {};

  /// The costs of kernels are said: by a profile, or by a machine.
  bool names_profile() const { return !profile.empty() || !machine.empty(); }
  /// Something is said of the machines besides their profile.
  bool names_cluster() const;
};
inline constexpr std::string_view kAsHardware = "hardware";

/// What joins the GPUs of a node where nobody says: an NVLink of the first GPUs that had enough of
/// them, as nccl-tests reach it within a machine of A100s.
inline constexpr GpuLinkCosts kUsualGpuLink = {.overhead_s = 5e-6, .bandwidth = 250e9};

/// What the options name.
struct LoadedMachines {
  Profile profile;
  Cluster cluster;
  std::vector<std::string> diagnostics;  ///< for the user: what was assumed or scaled
  std::vector<std::string> warnings;     ///< what is given and has no effect
};

/// Reads the profile (kDefaultProfile if none is given) and the cluster. The cluster has `nodes`
/// nodes; if that is 0, as many as its file says; if the file does not say, `otherwise`. InputError
/// naming the option or file whose value has no unit, is out of range, or contradicts another.
LoadedMachines load(const MachineOptions& options, std::uint32_t nodes, std::uint32_t otherwise);

/// With a machine every GPU is a node, and without a profile the kernels are those that the machine
/// names, scaled to its memory bandwidth.
///
/// The same with a profile that has been read, whose kernels stay as they are.
LoadedMachines load(const MachineOptions& options, Profile profile, std::uint32_t nodes,
                    std::uint32_t otherwise);

/// The rates of the machine that is named, for a job on that many GPUs (0: as the options say),
/// sharded over all of them or not. None without a machine.
std::optional<models::Rates> rates_of(const MachineOptions& options, std::uint32_t nodes,
                                      bool sharded);

/// Scales kernels to `memory_bandwidth`, in bytes per second: the time of every curve and stage
/// above its cost at size 0 is multiplied by the bandwidth that it was measured at and divided by
/// this one. The cost at size 0 is that of launches, and stays.
void scale_kernels(double memory_bandwidth, Profile& profile);

}  // namespace hipress::costs
