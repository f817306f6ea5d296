#include "costs/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <stdexcept>

#include "costs/exact_text.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "io/yaml.hpp"

namespace hipress::costs {
namespace {

using io::YamlNode;

constexpr const char* kFolder = "machines";
constexpr const char* kMachineSchema = "hipress.machine/1";
constexpr std::int64_t kMostGpus = 1 << 12;
constexpr std::int64_t kMostCards = 1 << 10;

/// Shares of NVLink's rate: SM…_NVLINK_BW of NCCL (src/graph/topo.h), divided by the link's rate.
constexpr std::array<GpuGeneration, 5> kGenerations = {{
    {"volta", 0, 20.0 / 25, "20 of 25 GB/s a link"},
    {"ampere", 1, 20.0 / 25, "20 of 25 GB/s a link"},
    {"ada", 1, 1, "no NVLink"},
    {"hopper", 2, 20.6 / 25, "20.6 of 25 GB/s a link"},
    {"blackwell", 3, 40.1 / 50, "40.1 of 50 GB/s a link"},
}};

constexpr std::array<FabricKind, 5> kFabrics = {{
    {"nvswitch", "every GPU reaches every other at its full rate", "on one NVSwitch", true, true},
    {"nvlink", "links between GPUs without a switch", "joined by NVLink", true, false},
    {"pcie", "GPUs write into each other over PCIe", "on one PCIe switch", false, false},
    {"shm", "GPUs copy through the host's memory", "joined through the host's memory", false,
     false},
    {"none", "a single GPU", "alone", false, false},
}};

/// Kinds of networks; docs/collectives.md names the sources of shares and latencies.
constexpr std::array<NetworkKind, 7> kNetworks = {{
    {"infiniband", "GPUDirect RDMA over InfiniBand", 0.96, 2.5e-6, 0, true, true},
    {"roce", "GPUDirect RDMA over Ethernet", 0.95, 4e-6, 0, true, true},
    {"efa", "AWS's adapter with its plugin aws-ofi-nccl", 0.9, 17e-6, 0, true, true},
    {"efa-v1", "AWS's adapter of P3 and P4", 0.86, 64e-6, 75e-6, false, true},
    {"tcpx", "Google's GPUDirect-TCPX(O)", 0.92, 44e-6, 150e-6, false, false},
    {"slingshot", "HPE Slingshot with aws-ofi-nccl", 0.92, 13e-6, 0, true, true},
    {"ethernet", "TCP, through the host's memory", 0.94, 25e-6, 0, false, false, 1.85e9},
}};

struct LibraryRow {
  const char* name;
  Library library;
  const char* written;
};
constexpr std::array<LibraryRow, 2> kLibraries = {{
    {"nccl", Library::kNccl, "NCCL"},
    {"gloo", Library::kGloo, "Gloo"},
}};

constexpr std::array<std::string_view, 3> kCpus = {"amd", "arm", "intel"};

/// Row by name. For an unknown name, calls `fail` with a message that suggests a known one.
template <typename Row, typename Fail>
const Row& row_named(std::string_view name, std::span<const Row> rows, Fail fail) {
  std::vector<std::string_view> known;
  for (const Row& row : rows) {
    if (row.name == name) return row;
    known.emplace_back(row.name);
  }
  fail("unknown " + io::quote(name) + io::suggestion(name, known));
  throw std::logic_error("fail must throw");
}

template <typename Row>
const Row& row_named(const YamlNode& node, std::span<const Row> rows) {
  return row_named(node.text(), rows, [&](const std::string& message) { node.fail(message); });
}

void entry(YAML::Emitter& out, const char* key, const std::string& value) {
  out << YAML::Key << key << YAML::Value << value;
}

void read_gpu(const YamlNode& gpu, Machine& machine) {
  gpu.expect_keys({"name", "generation", "memory", "memory_bandwidth", "tflops", "kernels"});
  machine.gpu = gpu.at("name").text();
  machine.generation = &row_named<GpuGeneration>(gpu.at("generation"), kGenerations);
  machine.memory_bytes = gpu.at("memory").size();
  machine.memory_bandwidth = gpu.at("memory_bandwidth").bandwidth();
  for (const auto& [dtype, tflops] : gpu.at("tflops").entries()) {
    machine.peak[dtype] = 1e12 * tflops.number(1e-3, 1e6, "10^12 operations per second, dense");
  }
  machine.kernels = gpu.at("kernels").text();
}

void read_fabric(const YamlNode& fabric, Machine& machine) {
  fabric.expect_keys({"kind", "bandwidth", "among"});
  machine.fabric = &row_named<FabricKind>(fabric.at("kind"), kFabrics);
  if (machine.gpus == 1) return;
  if (machine.fabric == &kFabrics.back()) {
    fabric.at("kind").fail(fmt::format(
        "{} GPUs are joined by something: nvswitch, nvlink, pcie or shm", machine.gpus));
  }
  machine.gpu_bandwidth = fabric.at("bandwidth").bandwidth();
  const auto among = fabric.find("among");
  if (!among) return;
  for (const auto& [count, bandwidth] : among->entries()) {
    const auto gpus = io::parse_integer(count, "a number of GPUs", 2, machine.gpus - 1);
    machine.part_bandwidth[static_cast<std::uint32_t>(gpus)] = bandwidth.bandwidth();
  }
}

void read_network(const YamlNode& network, Machine& machine) {
  network.expect_keys({"kind", "cards", "rate", "share", "latency"});
  machine.network = &row_named<NetworkKind>(network.at("kind"), kNetworks);
  machine.cards = static_cast<std::uint32_t>(network.at("cards").integer(1, kMostCards));
  machine.card_rate = network.at("rate").bandwidth();
  const auto share = network.find("share");
  machine.network_share = share ? share->number(0.01, 1, "of the rate that collectives reach")
                                : machine.network->share_of(machine.card_rate);
  const auto latency = network.find("latency");
  machine.network_latency_s = latency ? latency->duration() : machine.network->latency_s;
}

void read_cpu(const YamlNode& cpu, Machine& machine) {
  cpu.expect_keys({"vendor", "cores"});
  machine.cpu = cpu.at("vendor").text();
  if (std::ranges::find(kCpus, machine.cpu) == kCpus.end()) {
    cpu.at("vendor").fail("must be amd, arm or intel, got " + io::quote(machine.cpu));
  }
  machine.cores = static_cast<int>(cpu.at("cores").integer(1, 1 << 16));
}

/// Reads the sources; each section of figures must name one.
void read_sources(const YamlNode& root, Machine& machine) {
  const YamlNode sources = root.at("sources");
  for (const auto& [section, source] : sources.entries()) {
    machine.sources[section] = source.prose();
  }
  for (const char* section : {"gpu", "fabric", "network", "cpu"}) {
    if (root.has(section) && !machine.sources.contains(section)) {
      sources.fail(fmt::format("has no entry for {}: add the source of its figures", section));
    }
  }
}

}  // namespace

const FabricKind& fabric_kind(std::string_view name) {
  return row_named<FabricKind>(name, kFabrics, [](const std::string& message) {
    throw io::InputError("fabric: " + message);
  });
}

const NetworkKind& network_kind(std::string_view name) {
  return row_named<NetworkKind>(name, kNetworks, [](const std::string& message) {
    throw io::InputError("`network`: " + message);
  });
}

namespace {

Machine machine_of(const YamlNode& root) {
  root.expect_keys({"schema", "name", "gpus", "gpu", "fabric", "network", "cpu", "sources"});
  root.at("schema");
  root.expect_schema(kMachineSchema);
  Machine machine;
  machine.name = root.at("name").text();
  machine.gpus = static_cast<std::uint32_t>(root.at("gpus").integer(1, kMostGpus));
  read_gpu(root.at("gpu"), machine);
  read_fabric(root.at("fabric"), machine);
  if (const auto network = root.find("network")) read_network(*network, machine);
  read_cpu(root.at("cpu"), machine);
  read_sources(root, machine);
  return machine;
}

}  // namespace

void use_library(std::string_view name, Machine& machine) {
  machine.library = row_named<LibraryRow>(name, kLibraries, [](const std::string& message) {
                      throw io::InputError("`library`: " + message);
                    }).library;
  const NetworkKind& tcp = network_kind("ethernet");
  if (machine.library == Library::kNccl || machine.network == nullptr || machine.network == &tcp) {
    return;
  }
  machine.network = &tcp;
  machine.network_share = std::min(machine.network_share, tcp.share);
  machine.network_latency_s = std::max(machine.network_latency_s, tcp.latency_s);
}

const char* name_of(Library library) {
  return kLibraries[static_cast<std::size_t>(library)].written;
}

Machine parse_machine(const std::string& text, const std::string& name) {
  return machine_of(YamlNode::parse(text, name));
}

void write_machine(const std::string& path, const Machine& machine) {
  YAML::Emitter out;
  const auto open = [&](const char* key) {
    out << YAML::Key << key << YAML::Value << YAML::BeginMap;
  };
  out << YAML::BeginMap;
  entry(out, "schema", kMachineSchema);
  entry(out, "name", machine.name);
  entry(out, "gpus", std::to_string(machine.gpus));
  open("gpu");
  entry(out, "name", machine.gpu);
  entry(out, "generation", machine.generation->name);
  entry(out, "memory", io::format_size(machine.memory_bytes, 12));
  entry(out, "memory_bandwidth", exact_bandwidth(machine.memory_bandwidth));
  out << YAML::Key << "tflops" << YAML::Value << YAML::Flow << YAML::BeginMap;
  for (const auto& [dtype, rate] : machine.peak) {
    entry(out, dtype.c_str(), fmt::format("{:.6g}", rate / 1e12));
  }
  out << YAML::EndMap;
  entry(out, "kernels", machine.kernels);
  out << YAML::EndMap;
  open("fabric");
  entry(out, "kind", machine.fabric->name);
  if (machine.gpus > 1) entry(out, "bandwidth", exact_bandwidth(machine.gpu_bandwidth));
  if (!machine.part_bandwidth.empty()) {
    out << YAML::Key << "among" << YAML::Value << YAML::Flow << YAML::BeginMap;
    for (const auto& [gpus, bandwidth] : machine.part_bandwidth) {
      entry(out, std::to_string(gpus).c_str(), exact_bandwidth(bandwidth));
    }
    out << YAML::EndMap;
  }
  out << YAML::EndMap;
  if (machine.network != nullptr) {
    open("network");
    entry(out, "kind", machine.network->name);
    entry(out, "cards", std::to_string(machine.cards));
    entry(out, "rate", exact_bandwidth(machine.card_rate));
    entry(out, "share", fmt::format("{}", machine.network_share));
    entry(out, "latency", exact_duration(machine.network_latency_s));
    out << YAML::EndMap;
  }
  open("cpu");
  entry(out, "vendor", machine.cpu);
  entry(out, "cores", std::to_string(machine.cores));
  out << YAML::EndMap;
  out << YAML::Key << "sources" << YAML::Value << machine.sources << YAML::EndMap;
  const std::string text = std::string(out.c_str()) + "\n";
  parse_machine(text, path);  // refuses text that read_machine() could not read
  io::write_file(path, [&](std::ostream& file) { file << text; });
}

std::vector<std::string> machine_names() { return io::data_names(kFolder, ".yaml"); }

std::string machine_file(const std::string& path_or_name) {
  // Handled here, since names of machines have dots ("p5.48xlarge"), unlike those of other data.
  const std::vector<std::string> shipped = machine_names();
  if (std::ranges::binary_search(shipped, path_or_name)) {
    return io::data_file(fmt::format("{}/{}.yaml", kFolder, path_or_name));
  }
  if (!io::is_file(path_or_name)) {
    const std::vector<std::string_view> known(shipped.begin(), shipped.end());
    throw io::InputError(fmt::format("machine {}: neither a file nor a shipped machine{}",
                                     io::quote(path_or_name), io::suggestion(path_or_name, known)));
  }
  return path_or_name;
}

Machine read_machine(const std::string& path_or_name) {
  return machine_of(YamlNode::load(machine_file(path_or_name)));
}

}  // namespace hipress::costs
