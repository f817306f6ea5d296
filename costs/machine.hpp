#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::costs {

/// A generation of NVIDIA's GPUs, as collective libraries tell them apart.
struct GpuGeneration {
  const char* name;        ///< "hopper"
  int index;               ///< of the tables of collective_model.cpp
  double nvlink_share;     ///< of NVLink's rate that a library's rings plan with
  const char* nvlink_why;  ///< where the share comes from
};

/// Kind of fabric that joins the GPUs of a host.
struct FabricKind {
  const char* name;  ///< "nvswitch"
  const char* help;
  const char* joins;       ///< in a sentence: "on one NVSwitch"
  bool is_nvlink;          ///< reductions store words of 128 bytes whole
  bool switch_multicasts;  ///< where the GPUs' generation can: the switch sums and copies
};

/// A kind of network, between hosts.
struct NetworkKind {
  const char* name;  ///< "infiniband"
  const char* help;
  double share;        ///< of the cards' rate that large collectives reach
  double latency_s;    ///< one way between two GPUs, where a machine does not say
  double reported_s;   ///< latency that its plugin reports to the library, which it plans with
  bool keeps_words;    ///< stores of 128 bytes arrive whole: protocol LL128 is allowed
  bool has_nvls_tree;  ///< the switch inside hosts is used where a collective spans several
};

/// A host of GPUs as it is built: machines/NAME.yaml, schema hipress.machine/1 (docs/collectives.md
/// lists the keys).
struct Machine {
  std::string name;
  std::uint32_t gpus = 1;  ///< that one NVLink or PCIe fabric joins
  std::string gpu;         ///< "H100 SXM, 80 GB"
  const GpuGeneration* generation = nullptr;
  std::int64_t memory_bytes = 0;       ///< of a GPU
  double memory_bandwidth = 0;         ///< of a GPU, bytes per second
  std::map<std::string, double> peak;  ///< dense operations per second, by dtype
  std::string kernels;                 ///< profile whose kernels are scaled to memory_bandwidth
  const FabricKind* fabric = nullptr;
  double gpu_bandwidth = 0;  ///< of a GPU into the fabric, one way, bytes per second
  /// Bandwidth among fewer GPUs of the host, by their number, where links lead to a few of them.
  std::map<std::uint32_t, double> part_bandwidth = {};
  const NetworkKind* network = nullptr;
  std::uint32_t cards = 0;       ///< 0: hosts have no network
  double card_rate = 0;          ///< one way, bytes per second
  double network_share = 0;      ///< of the rate that is reached
  double network_latency_s = 0;  ///< one way, between two GPUs
  int cores = 0;
  std::string cpu;  ///< "amd", "arm" or "intel"
  std::map<std::string, std::string> sources;
  bool operator==(const Machine&) const = default;

  /// Bytes per second of a GPU into the fabric, among that many GPUs of its host.
  double bandwidth_among(std::uint32_t gpus_of_host) const {
    const auto part = part_bandwidth.lower_bound(gpus_of_host);
    return part == part_bandwidth.end() ? gpu_bandwidth : part->second;
  }

  /// Bytes per second that all cards of a host reach together, one way.
  double host_bandwidth() const { return cards * card_rate * network_share; }
};

/// Rows of the kinds; InputError with the known ones for another name.
const FabricKind& fabric_kind(std::string_view name);
const NetworkKind& network_kind(std::string_view name);

/// Reads a machine's file, or a shipped one by its name ("p5.48xlarge"). InputError with file and
/// line for what is unreadable, cut off, unknown, missing or makes no sense.
Machine read_machine(const std::string& path_or_name);

/// The same of text; `name` stands for the file in messages.
Machine parse_machine(const std::string& text, const std::string& name);

/// Writes a machine's file. Reading it gives the same machine.
void write_machine(const std::string& path, const Machine& machine);

/// Names of the shipped machines, in alphabetic order.
std::vector<std::string> machine_names();

}  // namespace hipress::costs
