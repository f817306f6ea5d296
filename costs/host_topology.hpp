#pragma once

#include <optional>
#include <string>

#include "costs/machine.hpp"

namespace hipress::costs {

/// A host's GPUs, cards and processors as its own tools report them. Zero and empty: not told.
struct HostTopology {
  const char* format = "";  ///< "an NCCL topology dump"
  std::string file;
  int gpus = 0;
  int compute_capability = 0;    ///< of the GPUs, times ten: 90 is Hopper
  std::optional<int> nvlinks;    ///< of one GPU; 0 where GPUs are not all joined by NVLink
  bool has_switch = false;       ///< the links end in NVSwitches
  bool one_pcie_switch = false;  ///< every GPU reaches every other below one PCIe switch
  double pcie_bandwidth = 0;     ///< of the slowest GPU's slot, as NCCL counts it, bytes per second
  int cards = 0;                 ///< those beside GPUs, or all where none is
  bool cards_beside_gpus = false;  ///< each shares a PCIe switch with a GPU
  double card_rate = 0;            ///< one way, bytes per second
  int other_cards = 0;             ///< slower ones, or farther from GPUs than `cards`
  std::string network;             ///< name of a NetworkKind
  int numa_nodes = 0;
  std::string cpu;  ///< "amd", "arm" or "intel"
  int cores = 0;
};

/// Reads an NCCL topology (what NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE reads) or the output
/// of `nvidia-smi topo -m`. InputError with file and line for another format, a file that is cut
/// off, one without GPUs, links or cards of GPUs that are not there.
HostTopology read_host_topology(const std::string& path);

/// Facts that the file lacks and a person gives.
struct TopologyOptions {
  std::string like;     ///< machine that has the rest; empty: a starter machine of such GPUs
  double rate = 0;      ///< of a card, bytes per second; 0: the file's, else the other machine's
  std::string network;  ///< kind; empty: the file's, else the other machine's
};

/// The machine that such hosts are. Its `sources` say what the topology does not tell. InputError
/// where no starter machine has such GPUs and `like` is empty.
Machine machine_of(const HostTopology& topology, const TopologyOptions& options);

/// "8 GPUs on one NVSwitch (450GB/s each way), 8 cards of 400Gbit/s, one for each GPU, 2 NUMA
/// nodes".
std::string in_words(const HostTopology& topology, const Machine& machine);

}  // namespace hipress::costs
