#include "costs/assumed_spread.hpp"
#include "costs/description.hpp"
#include "io/utf8.hpp"
#include "plans/plan_builder.hpp"
#include "requests/result_forms.hpp"
#include "requests/shared_records.hpp"
#include "requests/simulate.hpp"
#include "requests/simulated_chakra.hpp"
#include "sim/critical_path.hpp"

namespace hipress::requests {

using namespace sim;
using casync::to_seconds;

namespace {

constexpr const char* kStart = "The start of its 10–90 % interval";
constexpr const char* kEnd = "The end of its 10–90 % interval";

/// A task of the critical path.
void fill_task(Record& record, const Prediction& prediction, casync::TaskId id) {
  const traces::Timeline& timeline = prediction.result.timeline;
  const auto task = [&] { return prediction.graph[id]; };
  record.add(
      "kind", [&] { return std::string(casync::to_string(task().kind)); }, "The kind of task");
  record.add(
      "gradient",
      [&] {
        const casync::Kind kind = task().kind;
        const bool has_one = kind != casync::Kind::kForward && kind != casync::Kind::kSteps;
        return has_one ? std::optional(prediction.names[task().gradient]) : std::nullopt;
      },
      "Whose it is; null: of no gradient");
  record.add(
      "node", [&] { return task().node; }, "Where it is");
  record.add(
      "start_s", [&] { return to_seconds(timeline.start[id]); }, "When it starts");
  record.add(
      "end_s", [&] { return to_seconds(timeline.end[id]); }, "When it ends");
  record.add(
      "slowed_s", [&] { return timeline.slowed.empty() ? 0.0 : to_seconds(timeline.slowed[id]); },
      "How much longer computation took than alone");
}

using Shares = std::vector<std::pair<std::string, double>>;

/// Shares of the path from `begin` to its end, by kind; 0 for kinds that it does not have.
Shares path_shares(const Prediction& prediction, Picoseconds begin) {
  const PathTimes times =
      path_times(prediction.graph, prediction.result.timeline, prediction.critical_path, begin);
  const Picoseconds length = prediction.result.iteration - begin;
  const auto share = [&](Picoseconds time) {
    return length.count() > 0
               ? static_cast<double>(time.count()) / static_cast<double>(length.count())
               : 0.0;
  };
  Shares shares;
  for (int kind = 0; kind < casync::kKinds; ++kind) {
    if (static_cast<casync::Kind>(kind) == casync::Kind::kRecv) continue;  // takes no time
    shares.emplace_back(casync::to_string(static_cast<casync::Kind>(kind)),
                        share(times.by_kind[static_cast<std::size_t>(kind)]));
  }
  shares.emplace_back("wire", share(times.wire));
  return shares;
}

void fill_utilisation(Record& record, const Utilisation& use) {
  std::vector<std::pair<std::size_t, NodeUse>> nodes;
  for (const NodeUse& node : use.nodes) nodes.emplace_back(nodes.size(), node);
  record.list("nodes", nodes, "Each simulated node", [](Record& row, const auto& node) {
    const NodeUse& at = node.second;
    row.add("node", node.first, "Its number");
    row.add("compute", at.compute, "The stream of computation");
    row.add("codec", at.codec, "The stream that encodes and decodes");
    row.add("local", at.local, "Between the node's GPUs");
    row.add("egress", at.egress.utilisation, "The link, sending");
    row.add("ingress", at.ingress.utilisation, "The link, receiving");
    row.add("both_ways", at.both_ways, "Of what the link carries both ways together");
  });
  record.list("hosts", use.hosts, "Each host whose ranks share its cores",
              [](Record& row, const HostUse& host) {
                row.add("host", host.host, "Its number");
                row.add("cores", host.utilisation,
                        "Core-seconds in use, as a share of those there are");
              });
}

/// Of the node whose computation is slowed most, a step of it.
void fill_slowdown(Record& record, const std::pair<std::uint32_t, Slowdown>& slowest) {
  const Slowdown& slowdown = slowest.second;
  record.add("node", slowest.first, "Whose it is");
  record.add("by_codecs_s", to_seconds(slowdown.by_codecs), "Compression beside it");
  record.add("by_transfers_s", to_seconds(slowdown.by_transfers), "Transfers beside it");
  record.add("by_computation_s", to_seconds(slowdown.by_computation),
             "Computation of other ranks of its host");
}

/// A direction of a link of one of the three.
struct Link {
  std::optional<std::size_t> node, host, rack;
  const char* direction = "";
  LinkUse use;
};

std::vector<Link> links_of(const Utilisation& use) {
  std::vector<Link> links;
  const auto add = [&](std::optional<std::size_t> Link::*of, std::size_t number,
                       const char* direction, const LinkUse& link) {
    Link& made = links.emplace_back();
    made.*of = number;
    made.direction = direction;
    made.use = link;
  };
  for (std::size_t node = 0; node < use.nodes.size(); ++node) {
    add(&Link::node, node, "egress", use.nodes[node].egress);
    add(&Link::node, node, "ingress", use.nodes[node].ingress);
  }
  for (std::size_t host = 0; host < use.host_links.size(); ++host) {
    add(&Link::host, host, "nic out", use.host_links[host].out);
    add(&Link::host, host, "nic in", use.host_links[host].in);
  }
  for (std::size_t rack = 0; rack < use.rack_links.size(); ++rack) {
    add(&Link::rack, rack, "rack up", use.rack_links[rack].out);
    add(&Link::rack, rack, "rack down", use.rack_links[rack].in);
  }
  return links;
}

void fill_link(Record& record, const Link& link) {
  record.add_if_any("node", link.node, "Of the link of a node");
  record.add_if_any("host", link.host, "Of the network card of a host");
  record.add_if_any("rack", link.rack, "Of the link of a rack");
  record.add("direction", link.direction,
             "egress or ingress; nic out or nic in; rack up or rack down");
  record.add("bytes", link.use.bytes, "What it carries in an iteration");
  record.add("messages", link.use.messages, "In so many messages");
  record.add("utilisation", link.use.utilisation, "Bytes over what it could carry");
  record.add("busy", link.use.busy, "The share of the iteration in which it carries something");
}

void fill_replicas(Record& record, const Replicas& replicas) {
  record.add("count", replicas.count, "How many");
  record.add("mean_s", to_seconds(replicas.mean), "Their mean");
  record.add("p10_s", to_seconds(replicas.p10), "One in ten is shorter");
  record.add("p50_s", to_seconds(replicas.p50), "Their median");
  record.add("p90_s", to_seconds(replicas.p90), "One in ten is longer");
  record.add("p99_s", to_seconds(replicas.p99), "One in a hundred is longer");
}

void fill_sensitivity(Record& record, const Sensitivity& row) {
  record.add("iteration_s", to_seconds(row.iteration), "The iteration then");
  record.add("change_s", to_seconds(row.change), "Its change; negative: faster");
}

void fill_source(Record& record, const SpreadSource& source) {
  record.add("deviation", source.deviation, "The standard deviation of the logarithm of its costs");
  record.add("iteration_s_p10", source.alone.p10_s, "The interval if nothing else varied");
  record.add("iteration_s_p90", source.alone.p90_s, "Its end");
  record.add("share", source.share, "Of the sum of the squared widths");
}

void fill_bounds(Record& record, const FoldingBounds& bounds) {
  record.add("shortest_slices_s", to_seconds(bounds.shortest),
             "If all were as long as the shortest");
  record.add("longest_slices_s", to_seconds(bounds.longest), "If all were as long as the longest");
}

void fill_steady(Record& record, const SteadyState& steady) {
  std::vector<double> periods_s;
  for (const Picoseconds period : steady.periods) periods_s.push_back(to_seconds(period));
  record.add("periods_s", periods_s, "Between the ends of two");
  record.add("settled", steady.settled, "Whether they became alike");
}

const char* folding_name(const Prediction& prediction) {
  if (!prediction.graph.folded) return "none";
  return prediction.folding_bounds ? "bounded" : "exact";
}

/// By the names of rows that have one.
template <class Row>
std::vector<std::pair<std::string_view, Row>> by_names(const std::vector<Row>& rows) {
  std::vector<std::pair<std::string_view, Row>> named;
  for (const Row& row : rows) named.emplace_back(row.name, row);
  return named;
}

/// The times, each with its interval beside it.
void fill_times(Record& record, const Scenario& scenario, const Prediction& prediction) {
  const Picoseconds compute = compute_time(prediction);
  const Intervals intervals = intervals_of(scenario, prediction);
  const auto add = [&](const std::string& name, Picoseconds time, const Interval& interval,
                       std::string_view help, std::string_view help_of_p10 = kStart,
                       std::string_view help_of_p90 = kEnd) {
    record.add(name + "_s", to_seconds(time), help);
    record.add(name + "_s_p10", interval.p10_s, help_of_p10);
    record.add(name + "_s_p90", interval.p90_s, help_of_p90);
  };
  add("iteration", prediction.iteration, intervals.iteration,
      "One iteration in seconds; with `steady`, the period", "One iteration in ten is shorter",
      "One iteration in ten is longer");
  add("synchronisation", synchronisation_time(prediction), intervals.synchronisation,
      "From the first node's backward on");
  add("compute", compute, intervals.compute, "Forward and backward of the slowest node");
  add("exposed_communication", prediction.iteration - compute, intervals.exposed_communication,
      "`iteration_s` less `compute_s`");
}

/// Adds the critical path, and the utilisation of parts of machines.
void fill_parts(Record& record, const Scenario& scenario, const Prediction& prediction) {
  record.object("replicas", prediction.replicas, "Of `replicas`: iterations with jitter",
                fill_replicas);
  record.by_name(
      "critical_path_share", [&] { return path_shares(prediction, Picoseconds{}); },
      "Shares of the iteration that the critical path is in",
      "A kind of task; wire: between Send and Recv, with waits for a core");
  record.by_name(
      "exposed_communication_share",
      [&] {
        const bool in_shards = !prediction.graph.groups.empty();
        return path_shares(prediction,
                           in_shards ? prediction.result.iteration : prediction.result.compute);
      },
      "The same of the part behind the last Backward: why communication is exposed", "As above");
  record.object("utilisation", prediction.utilisation,
                "Shares of the iteration in which parts of machines are busy", fill_utilisation);
  record.object(
      "slowdown",
      [&] {
        return std::pair(prediction.slowdowns.slowest(), slowdown_of_step(scenario, prediction));
      },
      "What slows the computation that is slowed most, in a step", fill_slowdown);
  record.list("links", links_of(prediction.utilisation), "Each link and direction", fill_link);
  const auto& changes = prediction.sensitivities;
  record.by_name("sensitivity", changes.empty() ? std::nullopt : std::optional(by_names(changes)),
                 "With `sensitivity`: what 10 % more of one thing would bring",
                 "What is improved by 10 %", fill_sensitivity);
  record.object("steady", prediction.steady, "With `steady`: iterations one after the other",
                fill_steady);
  record.list("critical_path", prediction.critical_path,
              "The tasks that the iteration's end waits for, in their order",
              [&](Record& row, casync::TaskId id) { fill_task(row, prediction, id); });
}

}  // namespace

void fill(Record& record, const Simulated& simulated) {
  const Scenario& scenario = simulated.scenario;
  const Prediction& prediction = simulated.prediction;
  record.add("model", scenario.model.name, "The model's name");
  record.add("nodes", prediction.graph.nodes, "Nodes that synchronise");
  record.add("topology", scenario.plan.topology, "How what is compressed travels");
  record.add("algorithms", plans::used_algorithms(scenario.model, scenario.plan),
             "What the plan compresses with");
  fill_times(record, scenario, prediction);
  record.add(
      "machines",
      [&] {
        return sentence(
            costs::describe_machines(scenario.profile, scenario.cluster, scenario.model));
      },
      "Profile, nodes, links and time of computation in a sentence");
  record.add("bytes_sent_per_node", bytes_per_iteration(scenario, prediction),
             "What each node sends in one iteration");
  record.add("tasks", prediction.graph.tasks(), "Tasks of the simulated graph");
  record.add("folding", folding_name(prediction),
             "Whether nodes that behave alike were simulated once: none, exact, or bounded by two "
             "times");
  record.object("folding_bounds", prediction.folding_bounds,
                "Of bounded folding: the iteration if all slices were alike", fill_bounds);
  record.add("orbits", prediction.graph.representatives(),
             "Nodes that were simulated, each for those that behave as it does");
  record.add("simulation_s", prediction.simulation_s, "Seconds that the simulation took");
  record.add("tasks_per_s", prediction.graph.tasks() / prediction.simulation_s,
             "Tasks over these seconds");
  fill_parts(record, scenario, prediction);
  fill_mix(record, &scenario.cluster, &scenario.model);
  record.add("schedule", scenario.plan.schedule.text(), "When gradients are synchronised");
  record.add("steps_per_period", prediction.steps, "Steps after which that repeats");
  fill_load(record, compute_utilisation(scenario, prediction), prediction.traffic);
  record.section(prediction.explains_interval, [&] {
    record.by_name(
        "interval_sources",
        [&] {
          return by_names(
              explain_interval(prediction.response, costs::spread_of(scenario.profile)));
        },
        "With `explain_interval`: what makes the interval as wide as it is",
        "host, links, compute, model or iterations", fill_source);
  });
}

constinit const ResultForm kSimulateForm = {"simulate", "A simulated iteration",
                                            "Of a simulate request", schema_of<Simulated>};

io::Document document(const Simulated& simulated) { return document_of(simulated); }

void fill(Record& record, const SimulatedChakra& simulated) {
  const traces::ChakraGraph& exported = simulated.exported;
  const Result& result = simulated.result;
  record.add("model", io::printable(exported.model), "The model's name");
  record.add("plan", io::printable(exported.plan), "The plan that was exported");
  record.add("nodes", exported.graph.nodes, "Nodes of the graph");
  record.add("tasks", exported.graph.tasks(), "Its tasks");
  record.add("iteration_s", to_seconds(result.iteration), "One iteration, in seconds");
  record.add("compute_s", to_seconds(result.compute), "Computation of the slowest node");
  record.add("exposed_communication_s", to_seconds(result.iteration - result.compute),
             "`iteration_s` less `compute_s`");
  record.add("iteration_ps", result.iteration.count(), "The iteration in picoseconds");
  record.add("exported_iteration_ps", exported.iteration.count(),
             "The iteration that was exported");
  record.add("every_task_as_exported", simulated.as_exported(),
             "Whether every task starts and ends as exported");
  record.add("bytes_sent_per_node", result.bytes_sent, "What each node sends");
}

constinit const ResultForm kChakraForm = {"simulate", "A simulated Chakra graph",
                                          "Of hipress-sim with `chakra`",
                                          schema_of<SimulatedChakra>};

io::Document document(const SimulatedChakra& simulated) { return document_of(simulated); }

}  // namespace hipress::requests
