#pragma once

#include <optional>
#include <string>

#include "costs/machine.hpp"

namespace hipress::costs {

/// A host's GPUs, cards and processors, as reported by its own tools. Zero or empty: unknown.
struct HostTopology {
  const char* format = "";  ///< "an NCCL topology dump"
  std::string file;
  int gpus = 0;
  int compute_capability = 0;      ///< compute capability of the GPUs, times ten: 90 is Hopper
  std::optional<int> nvlinks;      ///< NVLinks per GPU; 0 if not all GPUs are joined
  bool has_switch = false;         ///< NVLinks end in NVSwitches
  bool one_pcie_switch = false;    ///< all GPUs are below one PCIe switch
  double pcie_bandwidth = 0;       ///< slowest GPU's slot as NCCL counts it, bytes/s
  int cards = 0;                   ///< number of cards that share a PCIe switch with a GPU, or of
                                   ///< all if none does
  bool cards_beside_gpus = false;  ///< each card shares a PCIe switch with a GPU
  double card_rate = 0;            ///< rate of a card, one way, bytes per second
  int other_cards = 0;             ///< number of cards that are slower, or farther from GPUs
  std::string network;             ///< name of a NetworkKind
  int numa_nodes = 0;
  std::string cpu;  ///< "amd", "arm" or "intel"
  int cores = 0;
};

/// Reads an NCCL topology (the file of NCCL_TOPO_DUMP_FILE or NCCL_TOPO_FILE) or the output of
/// `nvidia-smi topo -m`. Throws InputError with file and line for a different format, a truncated
/// file, a file without GPUs, or links or cards of GPUs that do not exist.
HostTopology read_host_topology(const std::string& path);

/// Data that the user gives because the file lacks it.
struct TopologyOptions {
  std::string like = {};     ///< machine for missing data; empty: a starter machine with these GPUs
  double rate = 0;           ///< rate of a card, bytes/s; 0: the file's, else `like`'s
  std::string network = {};  ///< kind of network; empty: the file's, else `like`'s
};

/// Machine with the hosts of the topology. Machine::sources names the origin of data that the
/// topology lacks. Throws InputError if `like` is empty and no starter machine has such GPUs.
Machine machine_of(const HostTopology& topology, const TopologyOptions& options);

/// Description, such as "8 GPUs on one NVSwitch (450GB/s each way), 8 cards of 400Gbit/s, one for
/// each GPU, 2 NUMA nodes".
std::string in_words(const HostTopology& topology, const Machine& machine);

}  // namespace hipress::costs
