#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::costs {

/// Generation of NVIDIA GPUs, which NCCL's tuning distinguishes.
struct GpuGeneration {
  const char* name;        ///< "hopper"
  int index;               ///< row in the tables of collective_model.cpp
  double nvlink_share;     ///< share of NVLink's rate that NCCL assumes when it plans rings
  const char* nvlink_why;  ///< source of nvlink_share
};

/// Kind of fabric that joins the GPUs of a host.
struct FabricKind {
  const char* name;  ///< "nvswitch"
  const char* help;
  const char* joins;       ///< words for sentences: "on one NVSwitch"
  bool is_nvlink;          ///< NVLink: stores of 128 bytes arrive whole, as protocol LL128 needs
  bool switch_multicasts;  ///< the switch sums and copies (NVLS), if the GPUs support it
};

/// Kind of network between hosts.
struct NetworkKind {
  const char* name;  ///< "infiniband"
  const char* help;
  double share;        ///< share of the cards' rate that large collectives reach, up to `most`
  double latency_s;    ///< default latency, one way between two GPUs
  double reported_s;   ///< latency that its plugin reports to NCCL, which plans with it
  bool keeps_words;    ///< stores of 128 bytes arrive whole: protocol LL128 is allowed
  bool has_nvls_tree;  ///< collectives over several hosts may use the hosts' NVSwitches
  double most = 0;     ///< limit of large collectives per card, bytes per second; 0: no limit

  /// Share of a card's rate that large collectives reach.
  double share_of(double rate) const { return most > 0 ? std::min(share, most / rate) : share; }
};

/// Library of a job's collectives.
enum class Library : std::uint8_t {
  kNccl,
  kGloo,  ///< for tensors in the host's memory; PyTorch's library for jobs on CPUs
};

/// Data sheet of a host with GPUs: machines/NAME.yaml, schema hipress.machine/1
/// (docs/collectives.md lists the keys).
struct Machine {
  std::string name;
  std::uint32_t gpus = 1;  ///< number of GPUs per host, joined by one NVLink or PCIe fabric
  std::string gpu;         ///< "H100 SXM, 80 GB"
  const GpuGeneration* generation = nullptr;
  std::int64_t memory_bytes = 0;       ///< memory per GPU
  double memory_bandwidth = 0;         ///< memory bandwidth per GPU, bytes per second
  std::map<std::string, double> peak;  ///< dense operations per second, by dtype
  std::string kernels;                 ///< profile with kernels to scale to memory_bandwidth
  const FabricKind* fabric = nullptr;
  double gpu_bandwidth = 0;  ///< per GPU into the fabric, one way, bytes per second
  /// gpu_bandwidth among fewer GPUs of the host, by their number, if links join only some pairs.
  std::map<std::uint32_t, double> part_bandwidth = {};
  const NetworkKind* network = nullptr;
  std::uint32_t cards = 0;       ///< 0: hosts have no network
  double card_rate = 0;          ///< one way, bytes per second
  double network_share = 0;      ///< share of card_rate that large collectives reach
  double network_latency_s = 0;  ///< one way, between two GPUs
  int cores = 0;
  std::string cpu;  ///< "amd", "arm" or "intel"
  std::map<std::string, std::string> sources;
  Library library = Library::kNccl;  ///< not part of the file: use_library() sets it
  bool operator==(const Machine&) const = default;

  /// Bandwidth of a GPU into the fabric among `gpus_of_host` GPUs of its host, bytes per second.
  double bandwidth_among(std::uint32_t gpus_of_host) const {
    const auto part = part_bandwidth.lower_bound(gpus_of_host);
    return part == part_bandwidth.end() ? gpu_bandwidth : part->second;
  }

  /// Bandwidth that all cards of a host reach together, one way, bytes per second.
  double host_bandwidth() const { return cards * card_rate * network_share; }
};

/// Sets the library, "nccl" or "gloo"; for other names throws InputError. Gloo sends over TCP
/// through the host's memory, so it limits cards to TCP's share of their rate, and raises their
/// latency to at least TCP's.
void use_library(std::string_view name, Machine& machine);
const char* name_of(Library library);

/// Rows by name. Throws InputError for an unknown name.
const FabricKind& fabric_kind(std::string_view name);
const NetworkKind& network_kind(std::string_view name);

/// Path of a machine's file: the path itself, or that of the shipped machine of this name. Throws
/// InputError if it is neither.
std::string machine_file(const std::string& path_or_name);

/// Reads a machine's file, or a shipped one by name ("p5.48xlarge"). Throws InputError with file
/// and line if it is unreadable or truncated, or a key is unknown, missing or invalid.
Machine read_machine(const std::string& path_or_name);

/// Like read_machine(), but reads text; `name` stands for the file in messages.
Machine parse_machine(const std::string& text, const std::string& name);

/// Writes a machine so that read_machine() returns an equal one.
void write_machine(const std::string& path, const Machine& machine);

/// Names of the shipped machines, in alphabetic order.
std::vector<std::string> machine_names();

}  // namespace hipress::costs
