#include "costs/machine_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "costs/collective_model.hpp"
#include "costs/description.hpp"
#include "costs/fabric.hpp"
#include "costs/link_yaml.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/yaml.hpp"

namespace hipress::costs {
namespace {

double bandwidth_of(const std::string& text, std::string_view option) {
  const double value = io::parse_bandwidth(text, option);
  if (value < io::kMinBandwidth || value > io::kMaxBandwidth) {
    throw io::InputError(fmt::format("{} must be from {} to {}, got {}", option,
                                     io::format_bandwidth(io::kMinBandwidth),
                                     io::format_bandwidth(io::kMaxBandwidth), io::quote(text)));
  }
  return value;
}

double duration_of(const std::string& text, std::string_view option) {
  const double value = io::parse_duration(text, option);
  if (value > io::kLongestDuration_s) {
    throw io::InputError(fmt::format("{} must be 0s to {:g}s, got {}", option,
                                     io::kLongestDuration_s, io::quote(text)));
  }
  return value;
}

void apply_link(const MachineOptions& options, LinkCosts& link) {
  if (!options.bandwidth.empty()) {
    link.set_bandwidth(bandwidth_of(options.bandwidth, "`bandwidth`"));
  }
  if (!options.latency.empty()) link.latency_s = duration_of(options.latency, "`latency`");
  if (!options.overhead.empty()) link.overhead_s = duration_of(options.overhead, "`overhead`");
  const std::string complaint = complaint_about_burst(link);
  if (!complaint.empty()) throw io::InputError("`bandwidth`: " + complaint);
}

void apply_gpus(const MachineOptions& options, LoadedMachines& machines) {
  Cluster& cluster = machines.cluster;
  if (cluster.of_machine) {
    if (options.gpus_per_node > 0) {
      throw io::InputError(
          "`gpus_per_node`: with a `machine` every GPU is a node; `gpus` says how many there are");
    }
    if (!options.gpu_bandwidth.empty() && cluster.host_link) {
      Machine& machine = *machines.profile.machine;
      machine.gpu_bandwidth = bandwidth_of(options.gpu_bandwidth, "`gpu_bandwidth`");
      machine.part_bandwidth.clear();
      cluster.host_link->set_bandwidth(ring_bandwidth(machine, nodes_per_host(cluster)));
      return;
    }
  }
  if (options.gpus_per_node > 0) {
    const std::int64_t gpus = std::int64_t{options.gpus_per_node} * machines_per_node(cluster);
    if (gpus > kMaxNodes) {
      throw io::InputError(
          fmt::format("`gpus_per_node`: {} GPUs of a site are more than {}", gpus, kMaxNodes));
    }
    cluster.gpus_per_node = static_cast<std::uint32_t>(gpus);
  }
  if (options.gpus_per_node > 1 && cluster.host_link) {
    throw io::InputError(
        fmt::format("`gpus_per_node` gives nodes several GPUs, and {} by its host_link makes each "
                    "node a GPU: leave one of them out",
                    options.cluster));
  }
  if (!options.gpu_bandwidth.empty()) {
    const double given = bandwidth_of(options.gpu_bandwidth, "`gpu_bandwidth`");
    if (cluster.gpu_link.bandwidth == 0) cluster.gpu_link = kUsualGpuLink;
    cluster.gpu_link.bandwidth = given;
    if (gpus_per_machine(cluster) == 1) {
      machines.warnings.emplace_back(
          "`gpu_bandwidth` has no effect: nodes have one GPU (`gpus_per_node`)");
    }
  }
  if (gpus_per_machine(cluster) > 1 && cluster.gpu_link.bandwidth == 0) {
    cluster.gpu_link = kUsualGpuLink;
    machines.diagnostics.push_back(
        fmt::format("GPUs of a node are assumed to be joined at {}, as by NVLink of A100s; "
                    "`gpu_bandwidth` changes that",
                    io::format_bandwidth(kUsualGpuLink.bandwidth)));
  }
}

void scale_curve(double factor, Curve& curve) {
  if (curve.pieces.empty()) return;
  const double launch_s = curve.pieces.front().a_s;
  for (Curve::Piece& piece : curve.pieces) {
    piece.b_s *= factor;
    piece.a_s = launch_s + (piece.a_s - launch_s) * factor;
    piece.a_s = std::max(piece.a_s, -piece.b_s * piece.from);  // times stay non-negative
  }
}

void scale_stage(double factor, StageCosts& stage) {
  const double launch_s = stage.a_s;
  stage = stage.times(factor);
  stage.a_s = launch_s;
}

/// Memory bandwidth at which the kernels' costs were measured, bytes per second.
double measured_at(const Profile& profile) {
  return profile.kernels_measured_at > 0 ? profile.kernels_measured_at : profile.memory_bandwidth;
}

void apply_scale(const MachineOptions& options, LoadedMachines& machines) {
  constexpr double kSame = 1e-6;
  Profile& profile = machines.profile;
  const double before = measured_at(profile);
  if (options.scale_kernels.empty()) {
    if (std::abs(profile.memory_bandwidth / before - 1) <= kSame) return;
    machines.warnings.push_back(
        fmt::format("profile {}: hardware.memory_bandwidth {} has no effect, since the costs of "
                    "kernels are for {} "
                    "(kernels.measured_at): `scale_kernels` scales them to it",
                    profile.name, io::format_bandwidth(profile.memory_bandwidth),
                    io::format_bandwidth(before)));
    return;
  }
  const bool as_hardware = options.scale_kernels == kAsHardware;
  const double to = as_hardware ? profile.memory_bandwidth
                                : bandwidth_of(options.scale_kernels, "`scale_kernels`");
  if (std::abs(to / before - 1) <= kSame) {
    machines.warnings.push_back(
        fmt::format("`scale_kernels` has no effect: the kernels of profile {} are of {}; give it "
                    "another bandwidth, or change the profile's hardware.memory_bandwidth",
                    profile.name, io::format_bandwidth(before)));
    return;
  }
  scale_kernels(to, profile);
  machines.diagnostics.push_back(fmt::format(
      "kernels of profile {} are scaled from {} to {} of memory bandwidth; costs of launches stay",
      profile.name, io::format_bandwidth(before), io::format_bandwidth(to)));
  profile.name += fmt::format(" with kernels scaled to {}", io::format_bandwidth(to));
}

/// Position of the "=" between two algorithms and outside their parameters, as in
/// "x.pse(b=2)=int4block(bits=4)"; npos if not found.
std::size_t equals_between(const std::string& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == '=' && depth == 0) return i;
  }
  return std::string::npos;
}

void apply_assumed_costs(const MachineOptions& options, LoadedMachines& machines) {
  Profile& profile = machines.profile;
  for (const std::string& text : options.assumed_costs) {
    const std::size_t equals = equals_between(text);
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      throw io::InputError(
          fmt::format("`assume_cost` {}: give an algorithm, and one that the profile has costs of: "
                      "tern.pse=int4block",
                      io::quote(text)));
    }
    const std::string algorithm = text.substr(0, equals), like = text.substr(equals + 1);
    if (profile.codecs.contains(algorithm)) {
      machines.warnings.push_back(
          fmt::format("`assume_cost` {} has no effect: profile {} has costs of its own for {}",
                      io::quote(text), profile.name, algorithm));
      continue;
    }
    profile.codecs[algorithm] = profile.codec(like);
    machines.diagnostics.push_back(
        fmt::format("{} is charged the cost of {}, as `assume_cost` says; hipress-profile "
                    "`algorithm` {} measures it",
                    algorithm, like, io::quote(algorithm)));
  }
}

/// Warns if link costs are given, but all nodes share the cores of the one measured machine.
void warn_of_shared_host(const MachineOptions& options, LoadedMachines& machines) {
  const bool own_links = !options.bandwidth.empty() || !options.latency.empty();
  const std::uint32_t nodes = machines.cluster.nodes;
  const bool placed = !options.cluster.empty() || options.nodes_per_host > 0;
  if (placed || !own_links || !machines.profile.shared_host || nodes < 2) return;
  machines.warnings.push_back(fmt::format(
      "profile {} was measured with all ranks on one machine, whose {} cores these {} nodes share: "
      "for machines of their own, give a cluster file with nodes_per_host: 1",
      machines.profile.name, machines.profile.cores, nodes));
}

/// Warns of link costs in the cluster file that replace the profile's, if the profile has the rate
/// of its link: users may mistake that rate for the bandwidth, which is lower.
void warn_of_replaced_link(const MachineOptions& options, LoadedMachines& machines) {
  const Profile& profile = machines.profile;
  if (options.cluster.empty() || profile.link_rate == 0) return;
  const auto link = io::YamlNode::load(options.cluster).find("link");
  if (!link) return;
  const Cluster& cluster = machines.cluster;
  const LinkCosts& given = cluster.site ? cluster.site->link : cluster.link;
  std::vector<std::string> changes;
  const auto add = [&](const char* key, double LinkCosts::*cost, std::string (*text)(double)) {
    if (!link->has(key) || given.*cost == profile.link.*cost) return;
    changes.push_back(
        fmt::format("{} {} instead of {}", key, text(given.*cost), text(profile.link.*cost)));
  };
  const auto duration = [](double seconds) { return io::format_duration(seconds); };
  add("bandwidth", &LinkCosts::bandwidth, describe_bandwidth);
  add("overhead", &LinkCosts::overhead_s, duration);
  add("latency", &LinkCosts::latency_s, duration);
  if (changes.empty()) return;
  std::string text = fmt::format("{}:{}: link replaces what profile {} has: {}", options.cluster,
                                 link->line(), profile.name, fmt::join(changes, ", "));
  if (link->has("bandwidth")) {
    text += fmt::format(
        "; if that bandwidth is the link's nominal speed, give it as rate: messages reach {:.0f} % "
        "of it in this profile",
        100 * profile.link.bandwidth / profile.link_rate);
  }
  machines.warnings.push_back(std::move(text));
}

/// Hosts and GPUs of a request. The number of GPUs is `gpus`, else `nodes`, else that of all hosts.
/// Throws InputError if they contradict each other or exceed the machine.
Ranks ranks_of(const MachineOptions& options, const Machine& machine, std::uint32_t nodes) {
  if (options.gpus > 0 && nodes > 0 && options.gpus != nodes) {
    throw io::InputError(
        fmt::format("`gpus` {} and {} nodes contradict each other: with a `machine` every GPU is a "
                    "node, so leave one of them out",
                    options.gpus, nodes));
  }
  Ranks ranks = {.hosts = options.hosts, .gpus = options.gpus > 0 ? options.gpus : nodes};
  if (ranks.hosts == 0) ranks.hosts = (std::max(ranks.gpus, 1U) + machine.gpus - 1) / machine.gpus;
  if (ranks.gpus == 0) ranks.gpus = ranks.hosts * machine.gpus;
  if (ranks.gpus > kMaxNodes || ranks.gpus % ranks.hosts != 0 || ranks.per_host() > machine.gpus ||
      ranks.per_host() == 0) {
    throw io::InputError(fmt::format(
        "`gpus` {} on {} hosts: give a multiple of `hosts`, at most {} on each, as machine {} has",
        ranks.gpus, ranks.hosts, machine.gpus, machine.name));
  }
  if (ranks.hosts > 1 && machine.network == nullptr) {
    throw io::InputError(
        fmt::format("`hosts` {}: machine {} has no network", ranks.hosts, io::quote(machine.name)));
  }
  return ranks;
}

/// Adds the machine and the hosts of the cluster file, if it names a machine.
MachineOptions with_file(MachineOptions options) {
  if (options.cluster.empty()) return options;
  const std::optional<MachineHosts> said = machine_hosts(options.cluster);
  if (!said && options.machine.empty()) return options;
  if (!options.machine.empty() && options.machine != (said ? said->machine : "")) {
    throw io::InputError("`machine` and `cluster` both define the hosts: leave one of them out");
  }
  const bool asked = options.node_count == NodeCount::kAsAsked;
  if (options.hosts > 0 && said->hosts > 0 && options.hosts != said->hosts && !asked) {
    throw io::InputError(
        fmt::format("{}: the cluster has {} hosts, but `hosts` {} are asked for: "
                    "leave out one of the two numbers",
                    options.cluster, said->hosts, options.hosts));
  }
  options.machine = said->machine;
  if (options.library.empty()) options.library = said->library;
  if (options.hosts == 0) options.hosts = said->hosts;
  if (options.gpus == 0) options.gpus = said->gpus;
  return options;
}

/// Cluster in which every GPU is a node. The host's fabric joins its GPUs, which share its cards.
Cluster cluster_of_machine(const MachineOptions& options, const Profile& profile,
                           std::uint32_t nodes) {
  const Machine& machine = *profile.machine;
  const Ranks ranks = ranks_of(options, machine, nodes);
  Cluster cluster = cluster_from_profile(profile, ranks.gpus);
  cluster.name = machine.name;
  cluster.of_machine = true;
  for (std::uint32_t node = 0; node < ranks.gpus; ++node) {
    cluster.host[node] = node / ranks.per_host();
  }
  cluster.link.overhead_s = kUsualGpuLink.overhead_s;
  if (machine.network != nullptr) {
    cluster.link.set_bandwidth(machine.host_bandwidth());
    cluster.link.latency_s = machine.network_latency_s;
  }
  if (machine.gpus > 1) {
    cluster.host_link = LinkCosts{.overhead_s = kUsualGpuLink.overhead_s};
    cluster.host_link->set_bandwidth(ring_bandwidth(machine, ranks.per_host()));
    cluster.cards = cards_of(machine, ranks.per_host());
  }
  if (!options.cluster.empty()) read_fabric(options.cluster, profile, cluster);
  return cluster;
}

Cluster read_any_cluster(const MachineOptions& options, const Profile& profile, std::uint32_t nodes,
                         std::uint32_t otherwise) {
  if (profile.machine) return cluster_of_machine(options, profile, nodes);
  if (options.hosts > 0 || options.gpus > 0) {
    throw io::InputError(fmt::format("`{}` needs a `machine`: name one, p5.48xlarge",
                                     options.hosts > 0 ? "hosts" : "gpus"));
  }
  if (!options.cluster.empty())
    return read_cluster(options.cluster, profile, nodes, options.node_count);
  return cluster_from_profile(profile, nodes > 0 ? nodes : otherwise);
}

}  // namespace

bool MachineOptions::names_machine() const { return !with_file(*this).machine.empty(); }

bool MachineOptions::names_cluster() const {
  return !machine.empty() || !cluster.empty() || !bandwidth.empty() || !latency.empty() ||
         !overhead.empty() || gpus_per_node > 0 || !gpu_bandwidth.empty();
}

std::optional<models::Rates> rates_of(const MachineOptions& given, std::uint32_t nodes,
                                      bool sharded) {
  const MachineOptions options = with_file(given);
  if (options.machine.empty()) return std::nullopt;
  const Machine machine = read_machine(options.machine);
  const std::uint32_t gpus = ranks_of(options, machine, nodes).gpus;
  return models::Rates{.name = machine.name,
                       .peak = machine.peak,
                       .memory_bandwidth = machine.memory_bandwidth,
                       .gpus = gpus,
                       .shards = sharded ? gpus : 1};
}

void scale_kernels(double memory_bandwidth, Profile& profile) {
  const double factor = measured_at(profile) / memory_bandwidth;
  scale_curve(factor, profile.merge);
  for (auto& [name, codec] : profile.codecs) {
    for (Curve* curve : {&codec.encode, &codec.decode, &codec.decode_add}) {
      scale_curve(factor, *curve);
    }
    for (StageCosts& stage : codec.stages) scale_stage(factor, stage);
    scale_stage(factor, codec.decode_stages);
  }
  profile.memory_bandwidth = profile.kernels_measured_at = memory_bandwidth;
}

LoadedMachines load(const MachineOptions& options, Profile profile, std::uint32_t nodes,
                    std::uint32_t otherwise) {
  LoadedMachines machines = {
      .profile = std::move(profile), .cluster = {}, .diagnostics = {}, .warnings = {}};
  machines.cluster = read_any_cluster(options, machines.profile, nodes, otherwise);
  if (options.nodes_per_host > 0) {
    for (std::uint32_t node = 0; node < machines.cluster.nodes; ++node) {
      machines.cluster.host[node] = node / options.nodes_per_host;
    }
  }
  warn_of_replaced_link(options, machines);
  apply_link(options, machines.cluster.link);
  apply_gpus(options, machines);
  warn_of_shared_host(options, machines);
  return machines;
}

Profile read_costs(const MachineOptions& options) {
  if (options.machine.empty()) {
    if (!options.library.empty()) {
      throw io::InputError("`library` is of the collectives on a `machine`: name one, p5.48xlarge");
    }
    return read_profile(options.profile.empty() ? std::string(kDefaultProfile) : options.profile);
  }
  Machine machine = read_machine(options.machine);
  if (!options.library.empty()) use_library(options.library, machine);
  Profile profile = read_profile(options.profile.empty() ? machine.kernels : options.profile);
  if (options.profile.empty()) {
    scale_kernels(machine.memory_bandwidth, profile);
    profile.name = machine.name;
  }
  profile.machine = std::move(machine);
  return profile;
}

LoadedMachines load(const MachineOptions& given, std::uint32_t nodes, std::uint32_t otherwise) {
  const MachineOptions options = with_file(given);
  LoadedMachines scaled;
  scaled.profile = read_costs(options);
  apply_scale(options, scaled);
  apply_assumed_costs(options, scaled);
  LoadedMachines machines = load(options, std::move(scaled.profile), nodes, otherwise);
  machines.diagnostics.insert(machines.diagnostics.begin(), scaled.diagnostics.begin(),
                              scaled.diagnostics.end());
  machines.warnings.insert(machines.warnings.begin(), scaled.warnings.begin(),
                           scaled.warnings.end());
  return machines;
}

}  // namespace hipress::costs
