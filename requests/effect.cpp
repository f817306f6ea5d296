#include "requests/effect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "casync/layout.hpp"
#include "casync/topology.hpp"
#include "io/error.hpp"
#include "io/yaml.hpp"
#include "planner/baselines/named_plans.hpp"
#include "planner/problem/problem.hpp"
#include "requests/shared_fields.hpp"

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

/// A key of a cluster file, with a change that shows if its value matters. A cost is set to zero
/// where possible: one that is never the bottleneck would have no effect at twice its value either.
template <class Costs>
struct Key {
  std::string_view name;
  void (*change)(Costs& costs);
};

constexpr double kSomeTime_s = 1e-3;

void toggle(double& cost, double some) { cost = cost > 0 ? 0 : some; }

void toggle_factor(double& factor) { factor = factor > 1 ? 1 : 2; }

template <class Link>
void double_rate(Link& link) {
  link.bandwidth *= 2;
  if constexpr (requires { link.bandwidth_both_ways; }) link.bandwidth_both_ways *= 2;
}

/// Keys of both kinds of links: between hosts (`link`) and within hosts (`host_link`).
constexpr Key<costs::LinkCosts> kLinkKeys[] = {
    {"bandwidth", double_rate},
    {"rate", double_rate},
    {"bandwidth_both_ways",
     [](costs::LinkCosts& link) {
       const bool full = link.bandwidth_both_ways == link.bandwidth;
       link.bandwidth_both_ways = full ? link.bandwidth / 2 : link.bandwidth;
     }},
    {"overhead", [](costs::LinkCosts& link) { toggle(link.overhead_s, kSomeTime_s); }},
    {"latency", [](costs::LinkCosts& link) { toggle(link.latency_s, kSomeTime_s); }},
    {"core_s_per_byte", [](costs::LinkCosts& link) { toggle(link.core_s_per_byte, 1e-8); }},
    {"core_factor_interrupting",
     [](costs::LinkCosts& link) { toggle_factor(link.core_factor_interrupting); }},
    {"core_time_per_message",
     [](costs::LinkCosts& link) { toggle(link.core_s_per_message, kSomeTime_s); }},
};

/// Link that the key `link` describes. In a cluster with sites, it joins the machines of a site.
costs::LinkCosts& link_of(Cluster& cluster) {
  return cluster.site ? cluster.site->link : cluster.link;
}

void move_hosts(Cluster& cluster) {
  const bool together = std::all_of(cluster.host.begin(), cluster.host.end(),
                                    [&](std::uint32_t host) { return host == cluster.host[0]; });
  // If racks are given without a host link, no two nodes may share a host. Each node then gets a
  // rack of its own.
  const std::uint32_t step =
      cluster.racks.empty() || cluster.host_link ? 1 : cluster.racks.back().hosts;
  for (std::uint32_t node = 0; node < cluster.nodes; ++node) {
    cluster.host[node] = together || step > 1 ? node * step : 0;
  }
}

constexpr Key<Cluster> kClusterKeys[] = {
    {"link.burst",
     [](Cluster& c) {
       if (costs::is_hierarchical(c)) return;  // such clusters have no bursts
       std::int64_t& burst = link_of(c).burst_bytes;
       burst = burst > 0 ? 0 : 1 << 20;
     }},
    {"rack.hosts", [](Cluster& c) { c.racks.front().hosts = c.racks.front().hosts == 1 ? 2 : 1; }},
    {"rack.oversubscription", [](Cluster& c) { c.racks.front().oversubscription *= 4; }},
    {"rack.latency", [](Cluster& c) { toggle(c.racks.front().latency_s, kSomeTime_s); }},
    {"rack", [](Cluster& c) { c.racks.clear(); }},
    {"cards", [](Cluster& c) { c.cards = {}; }},
    {"slow_links", [](Cluster& c) { c.slow_links.clear(); }},
    {"sites.link", [](Cluster& c) { double_rate(c.link); }},
    {"sites.pairs", [](Cluster& c) { c.slow_links.clear(); }},
    {"gpu_link.bandwidth", [](Cluster& c) { double_rate(c.gpu_link); }},
    {"gpu_link.rate", [](Cluster& c) { double_rate(c.gpu_link); }},
    {"gpu_link.overhead", [](Cluster& c) { toggle(c.gpu_link.overhead_s, kSomeTime_s); }},
    {"nodes_per_host", move_hosts},
    {"cores_per_host", [](Cluster& c) { c.cores_per_host = c.cores_per_host > 0 ? 0 : 1; }},
    {"host_memory_bandwidth", [](Cluster& c) { c.host_memory_bandwidth *= 8; }},
    {"core_turn", [](Cluster& c) { toggle(c.core_turn_s, kSomeTime_s); }},
    {"overlap.classes",
     [](Cluster& c) {
       for (costs::ClassOverlap& row : c.overlap.matrix->classes) {
         for (const auto& key : costs::kClassOverlapKeys) toggle_factor(row.*key.factor);
       }
     }},
    {"overlap.codec_beside_transfer",
     [](Cluster& c) { toggle_factor(c.overlap.matrix->codec_beside_transfer); }},
    {"overlap.transfer_beside_codec",
     [](Cluster& c) { toggle_factor(c.overlap.matrix->transfer_beside_codec); }},
    {"compute_speed",
     [](Cluster& c) {
       for (double& speed : c.compute_speed) speed /= 2;
     }},
};

/// Calls `visit(name, change)` for each key of a cluster file.
template <class Visit>
void each_cluster_key(const Visit& visit) {
  for (const auto& key : kLinkKeys) {
    visit(fmt::format("link.{}", key.name),
          [&](Cluster& cluster) { key.change(link_of(cluster)); });
    visit(fmt::format("host_link.{}", key.name), [&](Cluster& cluster) {
      if (cluster.host_link) key.change(*cluster.host_link);
    });
  }
  for (const auto& key : kClusterKeys) visit(std::string(key.name), key.change);
  for (const costs::OverlapConstant& constant : costs::kOverlapConstants) {
    visit(fmt::format("overlap.{}", constant.name), [&](Cluster& cluster) {
      double factor = cluster.overlap.*constant.factor;
      toggle_factor(factor);
      costs::set_constant(cluster.overlap, constant, factor);
    });
  }
}

bool given_in(const io::YamlNode& cluster, std::string_view key) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) {
    const auto found = cluster.find(key);
    return found && (key != "rack" || found->is_list());  // a map has keys of its own
  }
  const auto group = cluster.find(key.substr(0, dot));
  return group && group->is_map() && group->has(key.substr(dot + 1));
}

/// True if two plans of a model have the same units, and send each of them in the same way.
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

/// Hash of a timeline. Two timelines have the same hash if the same tasks run at the same times;
/// task ids and Joins do not count. It is a sum of hashes because the order of tasks may differ.
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

/// Returns `attempt()`, or nullopt if the change is invalid, such as nodes that share a host
/// without a link there. The effect of the field is then unknown.
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

/// True for plans that a search makes for the machines. Repeating it would take too long here.
bool is_made(const std::string& plan) {
  const std::vector<planner::NamedPlanRow> rows = planner::named_plan_rows();
  const auto row = std::ranges::find(rows, plan, &planner::NamedPlanRow::name);
  const bool is_soon_made = planner::kind_of_named_plan(plan) == planner::JobKind::kSharding;
  return row != rows.end() && row->depends_on_machines && !is_soon_made;
}

bool sends(const Effect& of) { return has_kind(of.graph, is_message); }

/// True if the collectives of a library carry shards.
bool shards(const Effect& of) { return !of.graph.groups.empty(); }

std::string no_messages(const Effect& of) {
  if (sends(of)) return {};
  if (shards(of)) return "a library's collectives carry the shards, one at a time on each network";
  return of.scenario.model.gradients.empty() ? "the model has no gradients to send"
                                             : "a job of one node sends nothing";
}

/// Context of the request's plan, with the given topology and algorithm.
plans::PlanContext context_of(const Effect& of, std::string_view topology, std::string algorithm) {
  // The plan was read before, so its programs are trusted.
  const SimulateRequest& request = of.request;
  return {.model = of.scenario.model,
          .topology = std::string(topology),
          .nodes = of.scenario.plan.nodes,
          .algorithm = std::move(algorithm),
          .trust = {.named = {request.algorithm}, .everything = request.trust.everything}};
}

/// Reads or makes the plan again.
plans::ResolvedPlan resolve(const Effect& of, const plans::PlanContext& context) {
  const Scenario& scenario = of.scenario;
  return planner::resolve_plan(of.request.plan, context,
                               {scenario.profile, scenario.cluster, scenario.network});
}

/// The plan with other options and another topology; nullopt if they are invalid.
std::optional<casync::Plan> plan_with(const Effect& of, const plans::PlanOptions& options,
                                      std::string_view topology) {
  return unless_refused([&] {
    const plans::PlanContext context = context_of(of, topology, of.request.algorithm);
    plans::ResolvedPlan resolved = resolve(of, context);
    plans::apply(options, context, resolved);
    resolved.plan.gpus_per_node = of.scenario.plan.gpus_per_node;
    resolved.plan.schedule = of.scenario.plan.schedule;
    casync::make_layout(of.scenario.model, resolved.plan);
    return std::move(resolved.plan);
  });
}

/// True if every task has the same times under `plan`.
bool same_times(const Effect& of, const casync::Plan& plan) {
  Scenario changed = of.scenario;
  changed.plan = plan;
  const auto compare = [&] {
    const casync::TaskGraph graph =
        expand(changed, of.graph.folded ? casync::Folding::kFolded : casync::Folding::kNone);
    const Result result = simulate(changed, graph, Timelines::kRecorded);
    return result.iteration == of.result.iteration && result.compute == of.result.compute &&
           fingerprint(graph, result.timeline) == fingerprint(of.graph, of.result.timeline);
  };
  return unless_refused(compare).value_or(false);
}

/// True if every task has the same times in `changed`, whose graph is the same.
bool same_in(const Effect& of, const Scenario& changed) {
  const auto compare = [&] {
    const Result result = simulate(changed, of.graph, Timelines::kRecorded);
    return result.iteration == of.result.iteration && result.compute == of.result.compute &&
           result.timeline.start == of.result.timeline.start &&
           result.timeline.end == of.result.timeline.end;
  };
  return unless_refused(compare).value_or(false);
}

/// True if some message takes that path.
bool uses(const Effect& of, costs::Path path) {
  if (shards(of)) return true;  // hosts and racks divide all groups in the same way
  for (casync::TaskId id = 0; id < of.graph.tasks(); ++id) {
    const casync::Task& task = of.graph[id];
    if (!is_message(task.kind)) continue;
    const costs::Path taken = costs::path(of.scenario.cluster, task.node, of.graph.peer(task));
    if (taken == path || (path == costs::Path::kBetweenRacks && taken > path)) return true;
  }
  return false;
}

/// Reason why a key of the cluster file has no effect.
std::string reason_of(const Effect& of, std::string_view key) {
  const Cluster& cluster = of.scenario.cluster;
  const bool of_cores = key == "core_turn" || key.find("link.core_") != std::string_view::npos;
  if (of_cores && cluster.cores_per_host == 0) {
    return "cores_per_host is 0, so cores are not shared";
  }
  if (key == "nodes_per_host" && !costs::shares_hosts(cluster)) {
    return "nodes on one host share neither a link (host_link) nor cores (cores_per_host)";
  }
  if (key.starts_with("gpu_link.") && costs::gpus_per_machine(cluster) == 1) {
    return "gpus_per_node is 1, so no link joins GPUs of a node";
  }
  const bool of_links =
      key.find("link.") != std::string_view::npos || key.starts_with("rack") || key == "cards";
  const bool within_sites = cluster.site && key.starts_with("link.");
  if (!sends(of) && !shards(of) && of_links && !within_sites) return no_messages(of);
  if (key.starts_with("host_link.") && !uses(of, costs::Path::kWithinHost)) {
    return "no two nodes on one host send to each other";
  }
  if (key == "cards" && !cluster.host_link) return "a node's GPUs use all cards of its host";
  if (key.starts_with("rack") && !uses(of, costs::Path::kBetweenRacks)) {
    return "no message goes from one rack to another";
  }
  return "another value gives every task the same times";
}

}  // namespace

bool Effect::may_simulate(std::string_view field) {
  const bool may = graph.tasks() <= most_tasks;
  if (!may) unchecked += fmt::format("{}`{}`", unchecked.empty() ? "" : ", ", field);
  return may;
}

std::string Effect::of_algorithm() const {
  if (is_made(request.plan)) return {};
  const std::string other = request.algorithm.starts_with("onebit") ? "fp16" : "onebit";
  const casync::Plan changed =
      resolve(*this, context_of(*this, scenario.plan.topology, other)).plan;
  const auto name = [](const casync::Plan& plan, std::size_t g) -> std::string_view {
    const std::int8_t algorithm = plan.decisions[g].algorithm;
    if (algorithm == casync::kRaw) return {};
    return plan.algorithms[static_cast<std::size_t>(algorithm)].name;
  };
  for (std::size_t g = 0; g < changed.decisions.size(); ++g) {
    if (name(changed, g) != name(scenario.plan, g)) return {};
  }
  const bool raw = std::ranges::all_of(scenario.plan.decisions, [](const auto& decision) {
    return decision.algorithm == casync::kRaw;
  });
  return fmt::format("plan {} {}", io::quote(request.plan),
                     raw ? "compresses nothing" : "names the algorithm of each gradient itself");
}

std::string Effect::of_profile() const {
  return has_kind(graph, is_priced) ? "" : "nothing is sent, coded or added, so no cost is used";
}

std::string Effect::of_option(std::string_view name) {
  if (is_made(request.plan)) return {};
  plans::PlanOptions others = request.plan_options;
  Fields rows;
  add(rows, others);
  for (const Field& row : rows) {
    if (row.name == name || row.needs == name) row.clear();
  }
  const std::optional<casync::Plan> plan = plan_with(*this, others, scenario.plan.topology);
  if (!plan || !same_units(scenario.model, scenario.plan, *plan)) return {};
  const bool same_rewrites =
      plan->batch == scenario.plan.batch && plan->pipelining == scenario.plan.pipelining;
  if (same_rewrites) return "the plan is the same without it";
  const bool same = may_simulate(name) && same_times(*this, *plan);
  return same ? "every task has the same times without it" : "";
}

std::string Effect::of_topology() const {
  if (is_made(request.plan)) return {};
  if (!sends(*this) || shards(*this)) return no_messages(*this);
  std::string others;
  const casync::Operation operation = casync::find_topology(scenario.plan.topology).operation;
  for (const casync::Topology* topology : casync::topologies_for(operation)) {
    if (topology->name == scenario.plan.topology) continue;
    const std::optional<casync::Plan> plan = plan_with(*this, request.plan_options, topology->name);
    if (!plan) continue;
    if (!same_units(scenario.model, scenario.plan, *plan)) return {};
    others += (others.empty() ? "" : ", ") + std::string(topology->name);
  }
  return others.empty() ? "" : "no gradient uses it; the tasks are the same with " + others;
}

std::string Effect::of_network() {
  if (!sends(*this) || shards(*this)) return no_messages(*this);
  if (!may_simulate("network")) return {};
  if (!costs::is_uniform(scenario.cluster))
    return {};  // only network fair can simulate such clusters
  Scenario changed = scenario;
  changed.network = scenario.network == Network::kFair ? Network::kPort : Network::kFair;
  if (!same_in(*this, changed)) return {};
  return fmt::format("{} gives every task the same times", to_string(changed.network));
}

std::string Effect::of_transfer_order() {
  if (!sends(*this) || shards(*this)) return no_messages(*this);
  if (!may_simulate("transfer_order")) return {};
  Scenario changed = scenario;
  const bool by_need = scenario.transfer_order == TransferOrder::kNeed;
  changed.transfer_order = by_need ? TransferOrder::kReady : TransferOrder::kNeed;
  if (!same_in(*this, changed)) return {};
  return fmt::format("{} gives every task the same times", to_string(changed.transfer_order));
}

std::vector<std::string> Effect::of_cluster() {
  const std::string& path = request.machines.cluster;
  if (path.empty() || load_machines(request).cluster.nodes != scenario.cluster.nodes) return {};
  if (!may_simulate("cluster")) return {};
  std::vector<std::string> sentences;
  const io::YamlNode file = io::YamlNode::load(path);
  each_cluster_key([&](const std::string& key, const auto& change) {
    if (!given_in(file, key)) return;
    Scenario changed = scenario;
    change(changed.cluster);
    if (!same_in(*this, changed)) return;
    sentences.push_back(fmt::format("{}: {} has no effect: {}", path, key, reason_of(*this, key)));
  });
  return sentences;
}

std::vector<std::string> without_effect(SimulateRequest request, const Scenario& scenario,
                                        const casync::TaskGraph& graph, const Result& result,
                                        std::uint32_t most_tasks) {
  Effect effect{request, scenario, graph, result, most_tasks};
  std::vector<std::string> sentences = without_effect(fields(request, &effect));
  for (std::string& sentence : effect.of_cluster()) sentences.push_back(std::move(sentence));
  if (!effect.unchecked.empty()) {
    sentences.push_back(
        fmt::format("{} tasks take too long to simulate again; effects were not checked for {}",
                    graph.tasks(), effect.unchecked));
  }
  return sentences;
}

}  // namespace hipress::requests
