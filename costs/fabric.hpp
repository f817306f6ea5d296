#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costs/cluster.hpp"
#include "costs/collective_model.hpp"
#include "io/yaml.hpp"

/// Reads the fabric's keys in cluster files: cards, levels of racks, hosts of a machine.
namespace hipress::costs {

/// Schema of cluster files.
inline constexpr std::string_view kClusterSchema = "hipress.cluster/1";

/// Reads key `rack`: one level, or a list of levels, lowest first. Throws InputError for an
/// oversubscription below 1, or a level whose racks do not consist of whole racks of the level
/// below.
std::vector<RackCosts> read_racks(const io::YamlNode& node);

/// Reads key `cards`; hosts and GPUs of the cluster must have been read. Throws InputError for more
/// cards than GPUs per host, or for GPUs that cannot be divided evenly among the cards.
CardCosts read_cards(const io::YamlNode& node, const Cluster& cluster);

/// Divides the nodes of a host, or its GPUs, among `count` cards. Throws std::invalid_argument
/// where read_cards() throws InputError.
CardCosts cards_of(std::uint32_t count, const Cluster& cluster);

/// Reads key `compute_speed`, a map from node index to speed. Nodes that are not listed keep their
/// speed.
void read_speeds(const io::YamlNode& node, std::vector<double>& compute_speed);

/// Cards of a machine's hosts if `gpus_of_host` GPUs of each host take part.
CardCosts cards_of(const Machine& machine, std::uint32_t gpus_of_host);

/// Hosts that a cluster file describes by key `machine`.
struct MachineHosts {
  std::string machine;                ///< a shipped machine's name, or a file
  std::uint32_t hosts = 0, gpus = 0;  ///< 0: not given
  std::string library = {};           ///< empty: not given
};

/// Reads the hosts; unset if the file names no machine. Throws InputError for an unknown machine,
/// or for keys that contradict its description.
std::optional<MachineHosts> machine_hosts(const std::string& path);

/// Total number of GPUs; unset if the file gives neither hosts nor GPUs.
std::optional<std::uint32_t> nodes_of(const MachineHosts& hosts);

/// Reads the other keys of a file that names a machine into `cluster`: name, racks, overlap,
/// compute speeds.
void read_fabric(const std::string& path, const Profile& profile, Cluster& cluster);

/// Description of a host, such as "8 GPUs on one NVSwitch, a card of 400Gbit/s each".
std::string describe_host(const Machine& machine);

/// Description of the racks, such as "racks of 16 hosts 2:1 oversubscribed, of 64 hosts 1.5:1";
/// empty without racks.
std::string describe_racks(const Cluster& cluster);

/// Sentence that compares an exchange between all pairs of `nodes` nodes with a ring, by the bytes
/// that leave a host; a host has `each` nodes.
std::string describe_exchange(std::uint32_t nodes, std::uint32_t each);

}  // namespace hipress::costs
