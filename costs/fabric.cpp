#include "costs/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <stdexcept>

#include "costs/overlap_yaml.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"

namespace hipress::costs {
namespace {

using io::YamlNode;

RackCosts read_level(const YamlNode& node) {
  node.expect_keys({"hosts", "oversubscription", "latency"});
  RackCosts rack;
  rack.hosts = static_cast<std::uint32_t>(node.at("hosts").integer(1, kMaxNodes));
  if (const auto factor = node.find("oversubscription")) {
    rack.oversubscription =
        factor->number(1, kMaxFactor, "1 is none, 4 a quarter of what comes from below");
  }
  if (const auto latency = node.find("latency")) rack.latency_s = latency->duration();
  return rack;
}

/// Path of file `name` in the folder of the cluster file if it exists there, else `name`.
std::string find_machine(const std::string& cluster, const std::string& name) {
  const std::filesystem::path beside = std::filesystem::path(cluster).parent_path() / name;
  return io::is_file(beside.string()) ? beside.string() : name;
}

}  // namespace

std::vector<RackCosts> read_racks(const YamlNode& node) {
  if (!node.is_list()) return {read_level(node)};
  std::vector<RackCosts> levels;
  for (const YamlNode& item : node.items()) {
    const RackCosts level = read_level(item);
    const std::uint32_t below = levels.empty() ? 1 : levels.back().hosts;
    if (!levels.empty() && (level.hosts <= below || level.hosts % below != 0)) {
      item.at("hosts").fail(
          fmt::format("is no whole number of the racks of {} hosts below: give {}, or another "
                      "multiple",
                      below, 2 * below));
    }
    levels.push_back(level);
  }
  if (levels.empty() || levels.size() > kMostLevels) {
    node.fail(fmt::format("give 1 to {} levels, the lowest first", kMostLevels));
  }
  return levels;
}

CardCosts read_cards(const YamlNode& node, const Cluster& cluster) {
  const auto count = static_cast<std::uint32_t>(node.integer(1, kMaxGpus));
  try {
    return cards_of(count, cluster);
  } catch (const std::invalid_argument& error) {
    node.fail(error.what());
  }
}

CardCosts cards_of(std::uint32_t count, const Cluster& cluster) {
  if (!cluster.slow_links.empty()) {
    throw std::invalid_argument("not in a cluster with slow_links: leave one of the two out");
  }
  const std::uint32_t gpus = cluster.host_link ? nodes_per_host(cluster) : cluster.gpus_per_node;
  if (cluster.site || (cluster.host_link && !fills_hosts(cluster))) {
    throw std::invalid_argument(
        "needs hosts with equally many GPUs: leave it out, or give such a number of nodes");
  }
  if (count > gpus) {
    throw std::invalid_argument(fmt::format(
        "{} cards serve GPUs that are not there: a host has {} (nodes_per_host with host_link, or "
        "gpus_per_node). Give at most that many; several cards of a GPU count as one",
        count, gpus));
  }
  if (gpus % count != 0) {
    throw std::invalid_argument(
        fmt::format("{} GPUs of a host cannot share {} cards evenly: give a divisor", gpus, count));
  }
  return count > 1 ? CardCosts{.count = count, .nodes = gpus / count} : CardCosts{};
}

CardCosts cards_of(const Machine& machine, std::uint32_t gpus_of_host) {
  const std::uint32_t cards = std::gcd(machine.cards, machine.gpus);
  if (cards < 2) return {};
  return {.count = cards, .nodes = std::gcd(machine.gpus / cards, gpus_of_host)};
}

std::optional<MachineHosts> machine_hosts(const std::string& path) {
  const YamlNode root = YamlNode::load(path);
  const auto machine = root.find("machine");
  if (!machine) return std::nullopt;
  root.expect_schema(kClusterSchema);
  root.expect_keys({"schema", "machine", "name", "hosts", "gpus", "library", "rack", "overlap",
                    "compute_speed"});
  MachineHosts found = {.machine = find_machine(path, machine->text())};
  try {
    read_machine(found.machine);
  } catch (const io::InputError& error) {
    if (io::is_file(found.machine)) throw;
    machine->fail(error.what());
  }
  const auto count = [&](const char* key) {
    const auto node = root.find(key);
    return node ? static_cast<std::uint32_t>(node->integer(1, kMaxNodes)) : 0;
  };
  found.hosts = count("hosts");
  found.gpus = count("gpus");
  if (const auto library = root.find("library")) found.library = library->text();
  return found;
}

std::optional<std::uint32_t> nodes_of(const MachineHosts& hosts) {
  if (hosts.gpus > 0) return hosts.gpus;
  if (hosts.hosts == 0) return std::nullopt;
  return hosts.hosts * read_machine(hosts.machine).gpus;
}

void read_speeds(const YamlNode& node, std::vector<double>& compute_speed) {
  for (const auto& [key, factor] : node.entries()) {
    std::int64_t index = 0;
    try {
      index =
          io::parse_integer(key, "node", 0, static_cast<std::int64_t>(compute_speed.size()) - 1);
    } catch (const std::exception& error) {
      factor.fail(error.what());
    }
    compute_speed[static_cast<std::size_t>(index)] =
        factor.number(kMinFactor, kMaxFactor, "1 is nominal, 0.5 half as fast");
  }
}

void read_fabric(const std::string& path, const Profile& profile, Cluster& cluster) {
  const YamlNode root = YamlNode::load(path);
  if (const auto name = root.find("name")) cluster.name = name->text();
  if (const auto rack = root.find("rack")) cluster.racks = read_racks(*rack);
  if (const auto overlap = root.find("overlap")) {
    cluster.overlap = read_overlap(*overlap, profile.overlap);
  }
  if (const auto speeds = root.find("compute_speed")) read_speeds(*speeds, cluster.compute_speed);
}

std::string describe_host(const Machine& machine) {
  std::string text = fmt::format("{} GPU{}", machine.gpus, machine.gpus == 1 ? "" : "s");
  if (machine.gpus > 1) text += fmt::format(" {}", machine.fabric->joins);
  if (machine.cards == 0) return text + " without a network";
  const std::string rate = io::format_bit_rate(machine.card_rate);
  if (machine.cards == 1) return text + fmt::format(", a card of {}", rate);
  if (machine.cards == machine.gpus) return text + fmt::format(", a card of {} each", rate);
  if (machine.cards % machine.gpus == 0) {
    return text + fmt::format(", {} cards of {} each", machine.cards / machine.gpus, rate);
  }
  return text + fmt::format(", {} cards of {} together", machine.cards, rate);
}

std::string describe_racks(const Cluster& cluster) {
  std::string text;
  for (const RackCosts& level : cluster.racks) {
    const bool first = text.empty();
    text += fmt::format("{} {} host{} {:.4g}:1{}", first ? "racks of" : ", of", level.hosts,
                        level.hosts == 1 ? "" : "s", level.oversubscription,
                        first ? " oversubscribed" : "");
  }
  return text;
}

std::string describe_exchange(std::uint32_t nodes, std::uint32_t each) {
  // With S bytes per node, a host sends each·(N−each)/N·S to other hosts; a ring sends (N−1)/N·S.
  const double times = 1.0 * each * (nodes - each) / (nodes - 1.0);
  return fmt::format(
      "compressed gradients are exchanged among the {} GPUs of a host first, then between hosts: "
      "{} GPUs at once would send {:.2g} times the bytes of a ring out of each host",
      each, nodes, times);
}

}  // namespace hipress::costs
