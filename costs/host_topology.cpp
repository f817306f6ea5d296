#include "costs/host_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io/error.hpp"
#include "io/quantity.hpp"

namespace hipress::costs {
namespace {

/// Shipped machine for a compute capability and a number of NVLinks.
struct Starter {
  int compute_capability;
  int nvlinks;       ///< NVLinks per GPU
  double link_rate;  ///< rate of one NVLink, one way, bytes per second
  const char* machine;
};
constexpr std::array<Starter, 9> kStarters = {{
    {70, 6, 25e9, "dgx-1"},
    {80, 12, 25e9, "hgx-a100-80gb"},
    {80, 0, 25e9, "4xa100-p2p"},
    {86, 4, 14.0625e9, "8xa40"},
    {86, 0, 14.0625e9, "8xa40"},
    {89, 0, 0, "2xrtx4090"},
    {90, 18, 25e9, "hgx-h100"},
    {100, 18, 50e9, "p6-b200.48xlarge"},
    {103, 18, 50e9, "p6-b200.48xlarge"},
}};

/// Assumed rate of a GPU's slot, bytes per second: PCIe 4.0 x16.
constexpr double kAssumedPcie = 24e9;
/// Share of the slot's rate that remains for data that crosses the host's memory twice.
constexpr double kShareOfSharedMemory = 0.5;

/// Row for these GPUs, or null. Without a compute capability, the first with their number of links.
const Starter* starter_of(const HostTopology& topology) {
  const int links = topology.nvlinks.value_or(0);
  const Starter* found = nullptr;
  for (const Starter& row : kStarters) {
    const bool same_links = row.nvlinks == links;
    if (topology.compute_capability == row.compute_capability && (same_links || !found)) {
      found = &row;
    }
    if (topology.compute_capability == 0 && links > 0 && same_links && !found) found = &row;
  }
  return found;
}

/// Rate of an NVLink in that machine, bytes per second; 0 if unknown.
double link_rate(const HostTopology& topology, const Machine& like) {
  const Starter* found = nullptr;
  for (const Starter& row : kStarters) {
    if (like.name == row.machine) return row.link_rate;
    if (found == nullptr && (row.compute_capability == topology.compute_capability ||
                             read_machine(row.machine).generation == like.generation)) {
      found = &row;
    }
  }
  return found ? found->link_rate : 0;
}

void set_fabric(const HostTopology& topology, const Machine& like, Machine& machine) {
  std::string& source = machine.sources["fabric"];
  if (topology.gpus == 1 || topology.nvlinks) machine.part_bandwidth.clear();  // of `like`
  if (topology.gpus == 1) {
    machine.fabric = &fabric_kind("none");
    machine.gpu_bandwidth = 0;
    source = fmt::format("one GPU ({})", topology.format);
  } else if (!topology.nvlinks) {
    source = fmt::format("not told by {}, taken from {}: {}", topology.format, like.name, source);
  } else if (*topology.nvlinks > 0) {
    const double rate = link_rate(topology, like);
    if (rate == 0) {
      throw io::InputError(
          topology.file, 0,
          fmt::format(
              "has NVLinks, and {} has none: give a machine with such GPUs, by the option like",
              like.name));
    }
    machine.fabric = &fabric_kind(topology.has_switch ? "nvswitch" : "nvlink");
    machine.gpu_bandwidth = *topology.nvlinks * rate;
    source = fmt::format("{}: {} NVLinks a GPU, {} each by data sheet", topology.format,
                         *topology.nvlinks, io::format_bandwidth(rate));
  } else {
    const bool told = topology.pcie_bandwidth > 0;
    const double slot = told ? topology.pcie_bandwidth : kAssumedPcie;
    machine.fabric = &fabric_kind(topology.one_pcie_switch ? "pcie" : "shm");
    machine.gpu_bandwidth = topology.one_pcie_switch ? slot : kShareOfSharedMemory * slot;
    source = fmt::format("{}: no NVLink between all GPUs; slots of {}{}{}", topology.format,
                         io::format_bandwidth(slot), told ? "" : " are assumed",
                         topology.one_pcie_switch ? "" : ", half of it through memory is assumed");
  }
}

void set_network(const HostTopology& topology, const TopologyOptions& options, const Machine& like,
                 Machine& machine) {
  if (topology.cards == 0) {
    machine.network = nullptr;
    machine.cards = 0;
    machine.card_rate = machine.network_share = machine.network_latency_s = 0;
    machine.sources.erase("network");
    return;
  }
  if (like.network == nullptr && ((topology.card_rate == 0 && options.rate == 0) ||
                                  (topology.network.empty() && options.network.empty()))) {
    throw io::InputError(
        topology.file, 0,
        fmt::format(
            "gives no rate or kind of its cards, and {} has none: add the options rate and network",
            like.name));
  }
  machine.cards = static_cast<std::uint32_t>(topology.cards);
  std::string rate_source = topology.format, kind_source = topology.format;
  if (options.rate > 0) {
    machine.card_rate = options.rate;
    rate_source = "given by hand";
  } else if (topology.card_rate > 0) {
    machine.card_rate = topology.card_rate;
  } else {
    rate_source = fmt::format("not told, taken from {}", like.name);
  }
  if (const std::string& kind = options.network.empty() ? topology.network : options.network;
      !kind.empty()) {
    machine.network = &network_kind(kind);
    if (!options.network.empty()) kind_source = "given by hand";
  } else {
    kind_source = fmt::format("not told, taken from {}", like.name);
  }
  const bool same_kind = machine.network == like.network;
  if (!same_kind) {
    machine.network_share = machine.network->share_of(machine.card_rate);
    machine.network_latency_s = machine.network->latency_s;
  }
  machine.sources["network"] = fmt::format(
      "number of cards: {}; rate: {}; kind: {}; share and latency of {}", topology.format,
      rate_source, kind_source, same_kind ? like.name : std::string(machine.network->name));
}

void set_cpu(const HostTopology& topology, const Machine& like, Machine& machine) {
  if (!topology.cpu.empty()) machine.cpu = topology.cpu;
  if (topology.cores > 0) machine.cores = topology.cores;
  const auto source = [&](bool told) {
    return told ? std::string(topology.format) : "not told, taken from " + like.name;
  };
  machine.sources["cpu"] = fmt::format("vendor: {}; cores: {}", source(!topology.cpu.empty()),
                                       source(topology.cores > 0));
}

std::string plural(int count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// Text on the ratio of cards to GPUs, such as "one for each GPU".
std::string share_of_cards(const HostTopology& topology) {
  const int cards = topology.cards, gpus = topology.gpus;
  if (!topology.cards_beside_gpus) return gpus > 1 ? ", shared by all GPUs" : "";
  if (gpus == 1) return "";
  if (cards % gpus == 0) {
    return cards == gpus ? ", one for each GPU" : fmt::format(", {} for each GPU", cards / gpus);
  }
  return gpus % cards == 0 ? fmt::format(", one for {} GPUs", gpus / cards) : "";
}

}  // namespace

Machine machine_of(const HostTopology& topology, const TopologyOptions& options) {
  const Starter* starter = starter_of(topology);
  if (options.like.empty() && starter == nullptr) {
    const std::string gpus =
        topology.compute_capability > 0
            ? fmt::format("GPUs of compute capability {}.{}", topology.compute_capability / 10,
                          topology.compute_capability % 10)
        : topology.nvlinks.value_or(0) > 0 ? fmt::format("GPUs of {} NVLinks", *topology.nvlinks)
                                           : "GPUs that the file does not tell apart";
    throw io::InputError(topology.file, 0,
                         fmt::format("has {}, for which there is no starter machine: give one with "
                                     "such GPUs, by the option like",
                                     gpus));
  }
  const Machine like = read_machine(options.like.empty() ? starter->machine : options.like);
  Machine machine = like;
  machine.gpus = static_cast<std::uint32_t>(topology.gpus);
  machine.sources["gpu"] =
      fmt::format("{}, taken from {}: {}",
                  options.like.empty() ? "a starter machine of such GPUs" : "given by hand",
                  like.name, like.sources.at("gpu"));
  set_fabric(topology, like, machine);
  set_network(topology, options, like, machine);
  set_cpu(topology, like, machine);
  return machine;
}

std::string in_words(const HostTopology& topology, const Machine& machine) {
  std::string words = plural(topology.gpus, "GPU");
  if (topology.gpus > 1) {
    words += fmt::format(" {} ({} each way)", machine.fabric->joins,
                         io::format_bandwidth(machine.gpu_bandwidth));
  }
  if (topology.cards > 0) {
    words += fmt::format(", {} of {}{}", plural(topology.cards, "card"),
                         io::format_bit_rate(machine.card_rate), share_of_cards(topology));
  } else {
    words += ", no network card";
  }
  if (topology.other_cards > 0) {
    words += fmt::format(" ({} left out)", plural(topology.other_cards, "other card"));
  }
  if (topology.numa_nodes > 0) words += ", " + plural(topology.numa_nodes, "NUMA node");
  return words;
}

}  // namespace hipress::costs
