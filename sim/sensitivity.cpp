#include "sim/sensitivity.hpp"

#include <algorithm>
#include <array>

#include "casync/folding.hpp"
#include "sim/forecast.hpp"

namespace hipress::sim {
namespace {

constexpr double kFaster = 1.1;  // a rate that is 10 % better
constexpr double kShorter = 0.9;

/// Sets a time to that of the same work at a 10 % higher speed.
void hurry(double& seconds) { seconds /= kFaster; }

void hurry(costs::Curve& curve) { curve = curve.times(1 / kFaster); }

void raise_bandwidth(Scenario& scenario) {
  scenario.cluster.link.bandwidth *= kFaster;
  scenario.cluster.link.bandwidth_both_ways *= kFaster;
}

void raise_host_bandwidth(Scenario& scenario) {
  if (!scenario.cluster.host_link) return;
  scenario.cluster.host_link->bandwidth *= kFaster;
  scenario.cluster.host_link->bandwidth_both_ways *= kFaster;
}

void raise_gpu_bandwidth(Scenario& scenario) { scenario.cluster.gpu_link.bandwidth *= kFaster; }

void raise_site_bandwidth(Scenario& scenario) {
  if (!scenario.cluster.site) return;
  scenario.cluster.site->link.bandwidth *= kFaster;
  scenario.cluster.site->link.bandwidth_both_ways *= kFaster;
}

void raise_rack_bandwidth(Scenario& scenario) {
  // Higher levels get faster, too: their bandwidth is a share of that of the lowest racks.
  if (!scenario.cluster.racks.empty()) hurry(scenario.cluster.racks.front().oversubscription);
}

void cut_latency(Scenario& scenario) {
  costs::Cluster& cluster = scenario.cluster;
  cluster.link.latency_s *= kShorter;
  if (cluster.host_link) cluster.host_link->latency_s *= kShorter;
  for (costs::RackCosts& rack : cluster.racks) rack.latency_s *= kShorter;
  if (cluster.site) cluster.site->link.latency_s *= kShorter;
  for (costs::SlowLink& link : cluster.slow_links) {
    if (link.latency_s) *link.latency_s *= kShorter;
  }
}

void cut_overhead(Scenario& scenario) {
  scenario.cluster.link.overhead_s *= kShorter;
  scenario.cluster.gpu_link.overhead_s *= kShorter;
  if (scenario.cluster.host_link) scenario.cluster.host_link->overhead_s *= kShorter;
  if (scenario.cluster.site) scenario.cluster.site->link.overhead_s *= kShorter;
}

void hurry_encode(Scenario& scenario) {
  for (auto& [name, codec] : scenario.profile.codecs) codec = codec.times(1 / kFaster, 1);
}

void hurry_decode(Scenario& scenario) {
  for (auto& [name, codec] : scenario.profile.codecs) codec = codec.times(1, 1 / kFaster);
}

void hurry_merge(Scenario& scenario) { hurry(scenario.profile.merge); }

void hurry_compute_by(double factor, Scenario& scenario) {
  scenario.model.forward_s /= factor;
  scenario.model.optimizer_s /= factor;
  for (models::Gradient& gradient : scenario.model.gradients) gradient.ready_s /= factor;
}

void hurry_compute(Scenario& scenario) { hurry_compute_by(kFaster, scenario); }

void cut_transfer_work(Scenario& scenario) {
  const auto cut = [](costs::LinkCosts& link) {
    link.core_s_per_byte *= kShorter;
    link.core_s_per_message *= kShorter;
  };
  cut(scenario.cluster.link);
  if (scenario.cluster.host_link) cut(*scenario.cluster.host_link);
}

constexpr std::array kImprovements = {
    Improvement{"bandwidth", "links carry 10 % more, one way and both ways", raise_bandwidth},
    Improvement{"host_link", "links within hosts carry 10 % more (if there are any)",
                raise_host_bandwidth},
    Improvement{"gpu_link", "links between the GPUs of a node carry 10 % more (if it has several)",
                raise_gpu_bandwidth},
    Improvement{"site", "links within sites carry 10 % more (if there are sites)",
                raise_site_bandwidth},
    Improvement{"rack", "links between racks carry 10 % more (if there are racks)",
                raise_rack_bandwidth},
    Improvement{"latency", "10 % less time on the wire", cut_latency},
    Improvement{"overhead", "10 % less time of each message at its ports", cut_overhead},
    Improvement{"encode", "encoding at 1.1 times its speed", hurry_encode},
    Improvement{"decode", "decoding, with or without adding, at 1.1 times its speed", hurry_decode},
    Improvement{"merge", "adding raw slices at 1.1 times its speed", hurry_merge},
    Improvement{"compute", "forward and backward at 1.1 times their speed", hurry_compute},
    Improvement{"transfer_cores", "10 % less CPU work of moving bytes (if cores are shared)",
                cut_transfer_work},
};

/// A possible bottleneck of a job, and a change that makes it twice as fast.
struct Doubling {
  std::string_view what;
  void (*apply)(Scenario& scenario);
  bool changes_graph = false;  ///< true for computation; all others change only costs of tasks
};
constexpr std::array kDoublings = {
    Doubling{"computation", [](Scenario& scenario) { hurry_compute_by(2, scenario); }, true},
    Doubling{"the network",
             [](Scenario& scenario) { slow_links(0.5, scenario.profile, scenario.cluster); }},
    Doubling{"codecs and merges", [](Scenario& scenario) { slow_kernels(0.5, scenario.profile); }},
    Doubling{"the CPU's part of transfers",
             [](Scenario& scenario) { slow_transfers(0.5, scenario.profile, scenario.cluster); }}};

/// Graph of a changed scenario, folded if the graph before the change was, and if still possible:
/// ready times determine the bulk groups, so the change may rule folding out.
casync::TaskGraph expand_again(const Scenario& changed, const casync::TaskGraph& before) {
  using casync::Foldability;
  const bool folds = before.folded &&
                     casync::foldable(changed.model, changed.plan).kind != Foldability::kImpossible;
  return expand(changed, folds ? casync::Folding::kFolded : casync::Folding::kNone);
}

Picoseconds changed_time(const Scenario& changed, const casync::TaskGraph& graph,
                         bool changes_graph) {
  return changes_graph ? iteration_time(changed, expand_again(changed, graph))
                       : iteration_time(changed, graph);
}

}  // namespace

std::span<const Improvement> improvements() { return kImprovements; }

std::vector<Sensitivity> sensitivities(const Scenario& scenario, const casync::TaskGraph& graph,
                                       Picoseconds iteration) {
  std::vector<Sensitivity> rows;
  for (const Improvement& improvement : kImprovements) {
    Scenario better = scenario;
    improvement.apply(better);
    const Picoseconds changed = changed_time(better, graph, improvement.apply == hurry_compute);
    rows.push_back({improvement.name, changed, changed - iteration});
  }
  return rows;
}

std::vector<models::Gain> gains(const Scenario& scenario, const casync::TaskGraph& graph,
                                Picoseconds iteration) {
  std::vector<models::Gain> found;
  for (const Doubling& doubling : kDoublings) {
    Scenario better = scenario;
    doubling.apply(better);
    const Picoseconds changed = changed_time(better, graph, doubling.changes_graph);
    const double saved = 1 - casync::to_seconds(changed) / casync::to_seconds(iteration);
    found.push_back({doubling.what, iteration.count() > 0 ? std::max(0.0, saved) : 0.0});
  }
  return found;
}

}  // namespace hipress::sim
