#include "requests/effect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "casync/layout.hpp"
#include "casync/topology.hpp"
#include "io/error.hpp"
#include "io/yaml.hpp"
#include "planner/baselines/named_plans.hpp"
#include "plans/plan_file.hpp"

namespace hipress::requests {

using namespace sim;

namespace {

using casync::Kind;
using costs::Cluster;

bool has_kind(const casync::TaskGraph& graph, bool (*wanted)(Kind)) {
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    if (wanted(graph[id].kind)) return true;
  }
  return false;
}

bool is_message(Kind kind) { return kind == Kind::kSend || kind == Kind::kAllReduce; }
bool is_priced(Kind kind) {
  return kind != Kind::kForward && kind != Kind::kBackward && kind != Kind::kSteps &&
         kind != Kind::kJoin;
}

/// A key of a cluster file, and a change of its value that shows whether the value matters: to
/// "none of it" where there is such a thing, since a cost that is never the bottleneck does nothing
/// at twice its value either.
struct ClusterKey {
  std::string_view name;
  void (*change)(Cluster& cluster);
};

constexpr double kSomeTime_s = 1e-3;

void toggle(double& cost, double some) { cost = cost > 0 ? 0 : some; }

void toggle_factor(double& factor) { factor = factor > 1 ? 1 : 2; }

/// Of the constant at that place in the table.
template <std::size_t kPlace>
void toggle_overlap(Cluster& cluster) {
  const costs::OverlapConstant& constant = costs::kOverlapConstants[kPlace];
  double factor = cluster.overlap.*constant.factor;
  toggle_factor(factor);
  costs::set_constant(cluster.overlap, constant, factor);
}

void move_hosts(Cluster& cluster) {
  const bool together = std::all_of(cluster.host.begin(), cluster.host.end(),
                                    [&](std::uint32_t host) { return host == cluster.host[0]; });
  // In racks without a host link no two nodes may share a host: each then has a rack of its own.
  const std::uint32_t step = cluster.rack && !cluster.host_link ? cluster.rack->hosts : 1;
  for (std::uint32_t node = 0; node < cluster.nodes; ++node) {
    cluster.host[node] = together || step > 1 ? node * step : 0;
  }
}

/// A change of the link within hosts, if there is one.
template <auto kMember>
void toggle_host(Cluster& cluster) {
  if (cluster.host_link) toggle((*cluster.host_link).*kMember, kSomeTime_s);
}

void double_rate(costs::LinkCosts& link) {
  link.bandwidth *= 2;
  link.bandwidth_both_ways *= 2;
}
void double_link(Cluster& cluster) { double_rate(cluster.link); }
void double_host_link(Cluster& cluster) { double_rate(*cluster.host_link); }
void double_gpu_link(Cluster& cluster) { cluster.gpu_link.bandwidth *= 2; }

constexpr std::array kClusterKeys = {
    ClusterKey{"link.bandwidth", double_link},
    ClusterKey{"link.rate", double_link},
    ClusterKey{"link.bandwidth_both_ways",
               [](Cluster& c) {
                 const bool full = c.link.bandwidth_both_ways == c.link.bandwidth;
                 c.link.bandwidth_both_ways = full ? c.link.bandwidth / 2 : c.link.bandwidth;
               }},
    ClusterKey{"link.overhead", [](Cluster& c) { toggle(c.link.overhead_s, kSomeTime_s); }},
    ClusterKey{"link.burst",
               [](Cluster& c) {
                 if (costs::is_hierarchical(c)) return;  // which has none
                 c.link.burst_bytes = c.link.burst_bytes > 0 ? 0 : 1 << 20;
               }},
    ClusterKey{"link.latency", [](Cluster& c) { toggle(c.link.latency_s, kSomeTime_s); }},
    ClusterKey{"link.core_s_per_byte", [](Cluster& c) { toggle(c.link.core_s_per_byte, 1e-8); }},
    ClusterKey{"link.core_factor_interrupting",
               [](Cluster& c) { toggle_factor(c.link.core_factor_interrupting); }},
    ClusterKey{"link.core_time_per_message",
               [](Cluster& c) { toggle(c.link.core_s_per_message, kSomeTime_s); }},
    ClusterKey{"host_link.bandwidth", double_host_link},
    ClusterKey{"host_link.rate", double_host_link},
    ClusterKey{"host_link.bandwidth_both_ways",
               [](Cluster& c) {
                 costs::LinkCosts& link = *c.host_link;
                 const bool full = link.bandwidth_both_ways == link.bandwidth;
                 link.bandwidth_both_ways = full ? link.bandwidth / 2 : link.bandwidth;
               }},
    ClusterKey{"host_link.overhead", toggle_host<&costs::LinkCosts::overhead_s>},
    ClusterKey{"host_link.latency", toggle_host<&costs::LinkCosts::latency_s>},
    ClusterKey{"host_link.core_s_per_byte", toggle_host<&costs::LinkCosts::core_s_per_byte>},
    ClusterKey{"host_link.core_factor_interrupting",
               [](Cluster& c) { toggle_factor(c.host_link->core_factor_interrupting); }},
    ClusterKey{"host_link.core_time_per_message",
               toggle_host<&costs::LinkCosts::core_s_per_message>},
    ClusterKey{"rack.hosts", [](Cluster& c) { c.rack->hosts = c.rack->hosts == 1 ? 2 : 1; }},
    ClusterKey{"rack.oversubscription", [](Cluster& c) { c.rack->oversubscription *= 4; }},
    ClusterKey{"rack.latency", [](Cluster& c) { toggle(c.rack->latency_s, kSomeTime_s); }},
    ClusterKey{"slow_links", [](Cluster& c) { c.slow_links.clear(); }},
    ClusterKey{"sites.link", double_link},
    ClusterKey{"sites.pairs", [](Cluster& c) { c.slow_links.clear(); }},
    ClusterKey{"gpu_link.bandwidth", double_gpu_link},
    ClusterKey{"gpu_link.rate", double_gpu_link},
    ClusterKey{"gpu_link.overhead", [](Cluster& c) { toggle(c.gpu_link.overhead_s, kSomeTime_s); }},
    ClusterKey{"nodes_per_host", move_hosts},
    ClusterKey{"cores_per_host",
               [](Cluster& c) { c.cores_per_host = c.cores_per_host > 0 ? 0 : 1; }},
    ClusterKey{"host_memory_bandwidth", [](Cluster& c) { c.host_memory_bandwidth *= 8; }},
    ClusterKey{"core_turn", [](Cluster& c) { toggle(c.core_turn_s, kSomeTime_s); }},
    ClusterKey{"overlap.compute_codec", toggle_overlap<0>},
    ClusterKey{"overlap.compute_transfer", toggle_overlap<1>},
    ClusterKey{"overlap.codec_transfer", toggle_overlap<2>},
    ClusterKey{"overlap.classes",
               [](Cluster& c) {
                 for (costs::ClassOverlap& row : c.overlap.matrix->classes) {
                   for (const auto& key : costs::kClassOverlapKeys) toggle_factor(row.*key.factor);
                 }
               }},
    ClusterKey{"overlap.codec_beside_transfer",
               [](Cluster& c) { toggle_factor(c.overlap.matrix->codec_beside_transfer); }},
    ClusterKey{"overlap.transfer_beside_codec",
               [](Cluster& c) { toggle_factor(c.overlap.matrix->transfer_beside_codec); }},
    ClusterKey{"compute_speed",
               [](Cluster& c) {
                 for (double& speed : c.compute_speed) speed /= 2;
               }},
};

bool same(const Result& a, const Result& b) {
  return a.iteration == b.iteration && a.compute == b.compute &&
         a.timeline.start == b.timeline.start && a.timeline.end == b.timeline.end;
}

bool given_in(const io::YamlNode& cluster, std::string_view key) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return cluster.has(key);
  const auto group = cluster.find(key.substr(0, dot));
  return group && group->has(key.substr(dot + 1));
}

/// Reads or makes the plan again.
plans::ResolvedPlan resolve(const Scenario& scenario, const Given& given,
                            const plans::PlanContext& context) {
  return planner::resolve_plan(given.plan, context,
                               {scenario.profile, scenario.cluster, scenario.network});
}

/// Whether a plan decides the same whatever the field `algorithm` says.
bool ignores_algorithm(const Scenario& scenario, const Given& given) {
  const std::string other = given.algorithm->starts_with("onebit") ? "fp16" : "onebit";
  const casync::Plan changed = resolve(scenario, given,
                                       {.model = scenario.model,
                                        .topology = scenario.plan.topology,
                                        .nodes = scenario.plan.nodes,
                                        .algorithm = other,
                                        .trust = given.trust})
                                   .plan;
  const auto name = [](const casync::Plan& plan, std::size_t g) -> std::string_view {
    const std::int8_t algorithm = plan.decisions[g].algorithm;
    if (algorithm == casync::kRaw) return {};
    return plan.algorithms[static_cast<std::size_t>(algorithm)].name;
  };
  for (std::size_t g = 0; g < changed.decisions.size(); ++g) {
    if (name(changed, g) != name(scenario.plan, g)) return false;
  }
  return true;
}

/// Whether two plans of a model put the same together, and send each unit in the same way.
bool same_units(const models::Model& model, const casync::Plan& a, const casync::Plan& b) {
  const casync::Layout left = casync::make_layout(model, a);
  const casync::Layout right = casync::make_layout(model, b);
  const auto algorithm = [](const casync::Plan& plan, const casync::Unit& unit) {
    if (unit.algorithm == casync::kRaw) return std::string();
    return plan.algorithms[static_cast<std::size_t>(unit.algorithm)].name;
  };
  if (left.order != right.order) return false;
  const auto by_library = [](const casync::Plan& plan) {
    return plan.schedule.row().sharded && !plan.shards_in_messages();
  };
  const bool no_topology = by_library(a) && by_library(b);
  return std::all_of(left.order.begin(), left.order.end(), [&](std::uint32_t index) {
    const casync::Unit& one = left.units[index];
    const casync::Unit& other = right.units[index];
    return one.elements == other.elements && one.partitions == other.partitions &&
           (no_topology || one.topology == other.topology) && one.members == other.members &&
           algorithm(a, one) == algorithm(b, other);
  });
}

/// The same for timelines in which the same tasks run at the same times, whatever their ids, and
/// whatever Joins there are besides. A sum of hashes, since the order differs.
std::uint64_t fingerprint(const casync::TaskGraph& graph, const traces::Timeline& times) {
  std::uint64_t sum = 0;
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    const casync::Task& task = graph[id];
    if (task.kind == Kind::kJoin) continue;
    std::uint64_t hash = static_cast<std::uint64_t>(task.kind);
    for (const std::uint32_t part : {task.node, task.gradient, task.partition, task.peer_offset}) {
      hash = mix(hash ^ part);
    }
    for (const Picoseconds time : {times.start[id], times.end[id]}) {
      hash = mix(hash ^ static_cast<std::uint64_t>(time.count()));
    }
    sum += hash;
  }
  return sum;
}

/// What `attempt` returns; none where what was changed for it is refused, as a cluster in which
/// nodes share a host without a link there. Whether the parameter matters is then not known.
template <class Attempt>
auto unless_refused(const Attempt& attempt) -> std::optional<decltype(attempt())> {
  try {
    return attempt();
  } catch (const io::InputError&) {
    return std::nullopt;
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

/// Collects the sentences.
class Search {
 public:
  Search(const Scenario& scenario, const casync::TaskGraph& graph, const Result& result,
         const Given& given, std::uint32_t most_tasks)
      : scenario_(scenario),
        graph_(graph),
        result_(result),
        given_(given),
        simulates_(graph.tasks() <= most_tasks) {}

  std::vector<std::string> take() {
    check_draws();
    if (given_.algorithm && ignores_algorithm(scenario_, given_)) {
      const bool raw = std::ranges::all_of(scenario_.plan.decisions, [](const auto& decision) {
        return decision.algorithm == casync::kRaw;
      });
      report("`algorithm`",
             fmt::format("plan {} {}", io::quote(given_.plan),
                         raw ? "compresses nothing" : "says itself what each gradient is sent as"));
    }
    if (given_.profile && !has_kind(graph_, is_priced)) {
      report("`profile`", "nothing is sent, coded or added, so no cost matters");
    }
    check_plan_options();
    const bool sends = has_kind(graph_, is_message) || shards();
    if (!has_kind(graph_, is_message)) check_without_messages();
    if (sends && !shards() && given_.topology) check_topology();
    if (sends && !shards() && given_.network && may_simulate("`network`")) check_network();
    if (sends && !shards() && given_.transfer_order && may_simulate("`transfer_order`"))
      check_transfer_order();
    if (!given_.cluster.empty() && may_simulate("`cluster`")) check_cluster(sends);
    if (!unchecked_.empty()) {
      sentences_.push_back(
          fmt::format("not checked for an effect, since {} tasks take long to simulate again: {}",
                      graph_.tasks(), unchecked_));
    }
    return std::move(sentences_);
  }

 private:
  void report(std::string_view parameter, std::string_view reason) {
    sentences_.push_back(fmt::format("{} has no effect: {}", parameter, reason));
  }

  /// Otherwise the parameter stays unchecked.
  bool may_simulate(std::string_view parameter) {
    if (!simulates_) unchecked_ += (unchecked_.empty() ? "" : ", ") + std::string(parameter);
    return simulates_;
  }

  void check_draws() {
    const std::optional<double> factor =
        scenario_.jitter ? scenario_.jitter->constant() : std::optional(1.0);
    if (scenario_.jitter && factor == 1) report("`jitter`", "all its factors are 1");
    if (given_.seed && factor) {
      report("`seed`", scenario_.jitter ? "all factors of the jitter are the same"
                                        : "without `jitter` nothing is drawn");
    }
    if (given_.jobs && given_.replicas == 1) report("`jobs`", "there is one replica");
  }

  /// The plan as it would be with other options or another topology; none where that is refused.
  std::optional<casync::Plan> plan_with(const plans::PlanOptions& options,
                                        std::string_view topology) const {
    plans::PlanContext context = {
        .model = scenario_.model, .topology = std::string(topology), .nodes = scenario_.plan.nodes};
    context.trust = given_.trust;
    if (given_.algorithm) context.algorithm = *given_.algorithm;
    return unless_refused([&] {
      plans::ResolvedPlan resolved = resolve(scenario_, given_, context);
      plans::apply(options, context, resolved);
      resolved.plan.gpus_per_node = scenario_.plan.gpus_per_node;
      resolved.plan.schedule = scenario_.plan.schedule;
      casync::make_layout(scenario_.model, resolved.plan);
      return std::move(resolved.plan);
    });
  }

  void check_plan_options() {
    for (const plans::PlanOptionRow& option : plans::plan_options()) {
      if (!option.given(given_.plan_options)) continue;
      plans::PlanOptions others = given_.plan_options;
      option.drop(others);
      const std::optional<casync::Plan> plan = plan_with(others, scenario_.plan.topology);
      if (!plan || !same_units(scenario_.model, scenario_.plan, *plan)) continue;
      const bool same_rewrites =
          plan->batch == scenario_.plan.batch && plan->pipelining == scenario_.plan.pipelining;
      if (same_rewrites) {
        report(option.name, "the plan is the same without it");
      } else if (may_simulate(option.name) && same_times(*plan)) {
        report(option.name, "every task has the same times without it");
      }
    }
  }

  bool same_times(const casync::Plan& plan) const {
    Scenario changed = scenario_;
    changed.plan = plan;
    const auto compare = [&] {
      const casync::TaskGraph graph =
          expand(changed, graph_.folded ? casync::Folding::kFolded : casync::Folding::kNone);
      const Result result = simulate(changed, graph, Timelines::kRecorded);
      return result.iteration == result_.iteration && result.compute == result_.compute &&
             fingerprint(graph, result.timeline) == fingerprint(graph_, result_.timeline);
    };
    return unless_refused(compare).value_or(false);
  }

  void check_topology() {
    std::string others;
    const casync::Operation operation = casync::find_topology(scenario_.plan.topology).operation;
    for (const casync::Topology* topology : casync::topologies_for(operation)) {
      if (topology->name == scenario_.plan.topology) continue;
      const std::optional<casync::Plan> plan = plan_with(given_.plan_options, topology->name);
      if (!plan) continue;
      if (!same_units(scenario_.model, scenario_.plan, *plan)) return;
      others += (others.empty() ? "" : ", ") + std::string(topology->name);
    }
    if (!others.empty())
      report("`topology`", "nothing goes by it; the same tasks come of " + others);
  }

  void check_without_messages() {
    const std::string reason = no_messages();
    if (given_.network) report("`network`", reason);
    if (given_.transfer_order) report("`transfer_order`", reason);
    if (given_.topology) report("`topology`", reason);
  }

  /// Libraries' collectives of groups.
  bool shards() const { return !graph_.groups.empty(); }

  std::string no_messages() const {
    if (shards()) return "shards go by a library's collectives, one at a time on each network";
    return scenario_.model.gradients.empty() ? "the model has no gradients to send"
                                             : "one node has nobody to send to";
  }

  /// Whether every task has the same times in that scenario.
  bool same_in(const Scenario& changed) const {
    const auto compare = [&] {
      return same(result_, simulate(changed, graph_, Timelines::kRecorded));
    };
    return unless_refused(compare).value_or(false);
  }

  void check_network() {
    if (!costs::is_uniform(scenario_.cluster)) return;  // which only fair can simulate
    Scenario changed = scenario_;
    changed.network = scenario_.network == Network::kFair ? Network::kPort : Network::kFair;
    if (same_in(changed)) {
      report("`network`",
             fmt::format("{} gives every task the same times", to_string(changed.network)));
    }
  }

  void check_transfer_order() {
    Scenario changed = scenario_;
    const bool by_need = scenario_.transfer_order == TransferOrder::kNeed;
    changed.transfer_order = by_need ? TransferOrder::kReady : TransferOrder::kNeed;
    if (same_in(changed)) {
      report("`transfer_order`",
             fmt::format("{} gives every task the same times", to_string(changed.transfer_order)));
    }
  }

  void check_cluster(bool sends) {
    const io::YamlNode file = io::YamlNode::load(given_.cluster);
    for (const ClusterKey& key : kClusterKeys) {
      if (!given_in(file, key.name)) continue;
      Scenario changed = scenario_;
      change(key, changed.cluster);
      if (!same_in(changed)) continue;
      report(fmt::format("{}: {}", given_.cluster, key.name), reason(key.name, sends));
    }
  }

  /// With sites, `link` is of their machines.
  static void change(const ClusterKey& key, Cluster& cluster) {
    const bool within_sites = cluster.site && key.name.starts_with("link.");
    if (within_sites) std::swap(cluster.link, cluster.site->link);
    key.change(cluster);
    if (within_sites) std::swap(cluster.link, cluster.site->link);
  }

  std::string reason(std::string_view key, bool sends) const {
    const bool of_cores = key == "core_turn" || key.find("link.core_") != std::string_view::npos;
    if (of_cores && scenario_.cluster.cores_per_host == 0) {
      return "cores_per_host is 0, so cores are not shared";
    }
    if (key == "nodes_per_host" && !costs::shares_hosts(scenario_.cluster)) {
      return "nodes on one host share neither a link (host_link) nor cores (cores_per_host)";
    }
    if (key.starts_with("gpu_link.") && costs::gpus_per_machine(scenario_.cluster) == 1) {
      return "gpus_per_node is 1, so there is nothing to join";
    }
    const bool of_links = key.find("link.") != std::string_view::npos || key.starts_with("rack.");
    const bool within_sites = scenario_.cluster.site && key.starts_with("link.");
    if (!sends && of_links && !within_sites) return no_messages();
    if (key.starts_with("host_link.") && !uses(costs::Path::kWithinHost)) {
      return "no two nodes on one host send to each other";
    }
    if (key.starts_with("rack.") && !uses(costs::Path::kBetweenRacks)) {
      return "no message goes from one rack to another";
    }
    return "another value gives every task the same times";
  }

  /// Some message takes that path.
  bool uses(costs::Path path) const {
    if (shards()) return true;  // hosts and racks cut all groups alike
    for (casync::TaskId id = 0; id < graph_.tasks(); ++id) {
      const casync::Task& task = graph_[id];
      if (!is_message(task.kind)) continue;
      if (costs::path(scenario_.cluster, task.node, graph_.peer(task)) == path) return true;
    }
    return false;
  }

  const Scenario& scenario_;
  const casync::TaskGraph& graph_;
  const Result& result_;
  const Given& given_;
  const bool simulates_;
  std::vector<std::string> sentences_;
  std::string unchecked_;
};

}  // namespace

std::vector<std::string> without_effect(const Scenario& scenario, const casync::TaskGraph& graph,
                                        const Result& result, const Given& given,
                                        std::uint32_t most_tasks) {
  return Search(scenario, graph, result, given, most_tasks).take();
}

}  // namespace hipress::requests
