#include "sweep/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "costs/fabric.hpp"
#include "io/error.hpp"
#include "models/time_options.hpp"

namespace hipress::sweep {

SweepInputs::SweepInputs(const SweepSpec& the_spec, const PointRange& points) : spec(the_spec) {
  load_models();
  load_profiles();
  for (std::int64_t index = points.begin; index < points.end; ++index) {
    const Point at = point(spec, index);
    if (clusters_.contains(cluster_key(at))) continue;
    costs::Cluster cluster = read_cluster(at);
    set_gpus(at, cluster);
    set_cards(at, cluster);
    set_racks(at, cluster);
    set_stragglers(at, cluster);
    set_slow_link(at, cluster);
    clusters_.emplace(cluster_key(at), std::move(cluster));
  }
}

costs::MachineOptions SweepInputs::machine_options(const AxisValue& profile,
                                                   const AxisValue& machine) const {
  costs::MachineOptions options;
  if (!machine.text.empty()) options.machine = spec.path(machine);
  // Without a profile in the spec, a machine brings its own kernel costs.
  if (machine.text.empty() || profile.line > 0) options.profile = spec.path(profile);
  return options;
}

void SweepInputs::load_profiles() {
  for (const AxisValue& file : spec.values[kProfile]) {
    for (const AxisValue& machine : spec.values[kMachine]) {
      try {
        profiles_.push_back(costs::read_costs(machine_options(file, machine)));
      } catch (const io::InputError& error) {
        const bool of_machine = !machine.text.empty() && file.line == 0;
        spec.fail(of_machine ? kMachine : kProfile, of_machine ? machine : file, error.what());
      }
    }
  }
}

void SweepInputs::load_models() {
  for (const AxisValue& file : spec.values[kModel]) {
    for (const AxisValue& time : spec.values[kComputeTime]) {
      models::Model& model = models_.emplace_back();
      try {
        model = models::read_model(spec.path(file));
      } catch (const io::InputError& error) {
        spec.fail(kModel, file, error.what());
      }
      try {
        if (time.number) models::apply({.compute_time = fmt::format("{}s", *time.number)}, model);
      } catch (const io::InputError& error) {
        spec.fail(kComputeTime, time, error.what());
      }
    }
  }
}

costs::Cluster SweepInputs::read_machine_cluster(const Point& point, std::uint32_t nodes) const {
  const AxisValue& machine = value(point, kMachine);
  const AxisValue& file = value(point, kCluster);
  costs::Profile of_point = profile(point);
  if (const auto cards = given(point, kCards)) {
    if (of_point.machine->network == nullptr) {
      spec.fail(kCards, value(point, kCards),
                fmt::format("machine {} has no network; leave the axis out", machine.text));
    }
    of_point.machine->cards = static_cast<std::uint32_t>(*cards);
  }
  costs::MachineOptions options = machine_options(value(point, kProfile), machine);
  if (!file.text.empty()) options.cluster = spec.path(file);
  try {
    return costs::load(options, std::move(of_point), nodes, nodes).cluster;
  } catch (const io::InputError& error) {
    spec.fail(kMachine, machine, error.what());
  }
}

costs::Cluster SweepInputs::read_cluster(const Point& point) const {
  const costs::Profile& of_point = profile(point);
  const auto nodes = static_cast<std::uint32_t>(*value(point, kNodes).number);
  const AxisValue& file = value(point, kCluster);
  if (!value(point, kMachine).text.empty()) return read_machine_cluster(point, nodes);
  if (file.text.empty()) return costs::cluster_from_profile(of_point, nodes);
  try {
    return costs::read_cluster(spec.path(file), of_point, nodes);
  } catch (const io::InputError& error) {
    const bool by_default = value(point, kNodes).line == 0;
    spec.fail(
        kCluster, file,
        std::string(error.what()) +
            (by_default ? fmt::format(" (axis nodes is {} unless the spec gives it)", nodes) : ""));
  }
}

void SweepInputs::set_gpus(const Point& point, costs::Cluster& cluster) const {
  const auto gpus = given(point, kGpusPerNode);
  if (!gpus) return;
  const auto fail = [&](const char* message) {
    spec.fail(kGpusPerNode, value(point, kGpusPerNode), message);
  };
  if (cluster.site) fail("the cluster has sites, which define their GPUs; leave the axis out");
  if (cluster.of_machine) fail("with a machine every GPU is a node; leave the axis out");
  cluster.gpus_per_node = static_cast<std::uint32_t>(*gpus);
  if (cluster.gpus_per_node > 1 && cluster.gpu_link.bandwidth <= 0) {
    fail(
        "no link joins a node's GPUs: give a file of axis cluster with gpu_link: {bandwidth: "
        "300GB/s, overhead: 5us}");
  }
}

void SweepInputs::set_cards(const Point& point, costs::Cluster& cluster) const {
  const auto cards = given(point, kCards);
  if (!cards || cluster.of_machine) return;  // read_machine_cluster() has set the cards
  try {
    cluster.cards = costs::cards_of(static_cast<std::uint32_t>(*cards), cluster);
  } catch (const std::invalid_argument& error) {
    spec.fail(kCards, value(point, kCards), error.what());
  }
}

void SweepInputs::set_racks(const Point& point, costs::Cluster& cluster) const {
  const auto hosts = given(point, kHostsPerRack);
  const auto oversubscription = given(point, kOversubscription);
  if (!hosts && !oversubscription) return;
  const Axis axis = hosts ? kHostsPerRack : kOversubscription;
  const auto fail = [&](const char* message) { spec.fail(axis, value(point, axis), message); };
  if (!hosts && cluster.racks.empty()) {
    fail("there are no racks: give axis hosts_per_rack, or a file of axis cluster with rack");
  }
  if (cluster.site) fail("the cluster has sites, and none of them racks; leave the axis out");
  if (!cluster.slow_links.empty()) {
    fail("the cluster has slow links, which racks exclude; leave one of the two out");
  }
  if (costs::share_a_host(cluster) && !cluster.host_link) {
    fail("nodes share hosts, and no link joins them; give a file of axis cluster with host_link");
  }
  if (cluster.racks.empty()) cluster.racks.emplace_back();
  if (hosts) cluster.racks.front().hosts = static_cast<std::uint32_t>(*hosts);
  if (oversubscription) cluster.racks.front().oversubscription = *oversubscription;
}

void SweepInputs::set_stragglers(const Point& point, costs::Cluster& cluster) const {
  const auto count = static_cast<std::size_t>(*given(point, kStragglers));
  std::vector<double>& speeds = cluster.compute_speed;
  if (count > speeds.size()) {
    spec.fail(kStragglers, value(point, kStragglers),
              fmt::format("there are only {} nodes; give no more", speeds.size()));
  }
  for (std::size_t i = speeds.size() - count; i < speeds.size(); ++i) {
    speeds[i] *= *given(point, kStragglerSpeed);
  }
}

void SweepInputs::set_slow_link(const Point& point, costs::Cluster& cluster) const {
  const double share = *given(point, kSlowLink);
  if (share == 1) return;
  const auto fail = [&](const char* message) {
    spec.fail(kSlowLink, value(point, kSlowLink), message);
  };
  if (cluster.host.empty() || *std::ranges::max_element(cluster.host) == 0) {
    fail("there is one host, and no link between two; give more nodes, or leave the axis out");
  }
  if (!cluster.racks.empty())
    fail("the cluster has racks, which slow links exclude; leave one of them out");
  if (!cluster.slow_links.empty()) {
    fail("the cluster's file has slow links of its own; leave one of the two out");
  }
  cluster.slow_links.push_back({.a = 0, .b = 1, .bandwidth = share * cluster.link.bandwidth});
}

costs::LinkCosts SweepInputs::link(const Point& point) const {
  costs::LinkCosts link = base_cluster(point).link;
  if (const auto bandwidth = value(point, kBandwidth).number) {
    link.set_bandwidth(*bandwidth);
  }
  link.latency_s = value(point, kLatency).number.value_or(link.latency_s);
  link.overhead_s = value(point, kOverhead).number.value_or(link.overhead_s);
  return link;
}

costs::Cluster SweepInputs::cluster(const Point& point) const {
  costs::Cluster cluster = base_cluster(point);
  cluster.link = link(point);
  if (const double share = *given(point, kSlowLink); share < 1) {
    cluster.slow_links.front().bandwidth = share * cluster.link.bandwidth;
  }
  for (double& speed : cluster.compute_speed) speed *= *value(point, kComputeSpeed).number;
  return cluster;
}

std::string SweepInputs::describe(const Point& point) const {
  std::string text = "point";
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    const AxisValue& at = spec.values[axis][point[axis]];
    if (at.line > 0) text += fmt::format(" {}={}", axes()[axis].name, at.text);
  }
  return text;
}

}  // namespace hipress::sweep
