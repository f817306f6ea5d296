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

/// Fills the record of a task on the critical path.
void fill_task(Record& record, const Prediction& prediction, casync::TaskId id) {
  const traces::Timeline& timeline = prediction.result.timeline;
  const auto task = [&] { return prediction.graph[id]; };
  record.add(
      "kind", [&] { return std::string(casync::to_string(task().kind)); }, "Kind of task");
  record.add(
      "gradient",
      [&] {
        const casync::Kind kind = task().kind;
        const bool has_one = kind != casync::Kind::kForward && kind != casync::Kind::kSteps;
        return has_one ? std::optional(prediction.names[task().gradient]) : std::nullopt;
      },
      "Gradient that the task belongs to; null for Forward and Steps");
  record.add(
      "node", [&] { return task().node; }, "Node of the task");
  record.add(
      "start_s", [&] { return to_seconds(timeline.start[id]); }, "Start time of the task");
  record.add(
      "end_s", [&] { return to_seconds(timeline.end[id]); }, "End time of the task");
  record.add(
      "slowed_s", [&] { return timeline.slowed.empty() ? 0.0 : to_seconds(timeline.slowed[id]); },
      "Time by which overlap slows the computation");
}

using Shares = std::vector<std::pair<std::string, double>>;

/// Shares by kind in the path from `begin` to its end; 0 for kinds that it lacks.
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
    row.add("compute", at.compute, "Computation stream");
    row.add("codec", at.codec, "Codec stream");
    row.add("local", at.local, "Links between the node's GPUs");
    row.add("egress", at.egress.utilisation, "The link, sending");
    row.add("ingress", at.ingress.utilisation, "The link, receiving");
    row.add("both_ways", at.both_ways, "Share of the link's capacity in both directions together");
  });
  record.list(
      "hosts", use.hosts, "Hosts whose ranks share cores", [](Record& row, const HostUse& host) {
        row.add("host", host.host, "Its number");
        row.add("cores", host.utilisation, "Core-seconds in use, as a share of those available");
      });
}

/// Adds the slowdown of a step on the node whose computation is slowed most.
void fill_slowdown(Record& record, const std::pair<std::uint32_t, Slowdown>& slowest) {
  const Slowdown& slowdown = slowest.second;
  record.add("node", slowest.first, "Node that is slowed most");
  record.add("by_codecs_s", to_seconds(slowdown.by_codecs), "Compression beside it");
  record.add("by_transfers_s", to_seconds(slowdown.by_transfers), "Transfers beside it");
  record.add("by_computation_s", to_seconds(slowdown.by_computation),
             "Computation of other ranks on its host");
}

/// One direction of a node's, host's or rack's link.
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
  record.add_if_any("node", link.node, "Node whose link it is");
  record.add_if_any("host", link.host, "Host whose network card it is");
  record.add_if_any("rack", link.rack, "Rack whose uplink it is");
  record.add("direction", link.direction,
             "Direction: egress or ingress, nic out or nic in, rack up or rack down");
  record.add("bytes", link.use.bytes, "Bytes carried in an iteration");
  record.add("messages", link.use.messages, "Number of messages");
  record.add("utilisation", link.use.utilisation,
             "Bytes over the link's capacity during the iteration");
  record.add("busy", link.use.busy, "Share of the iteration in which the link is busy");
}

void fill_replicas(Record& record, const Replicas& replicas) {
  record.add("count", replicas.count, "Number of replicas");
  record.add("mean_s", to_seconds(replicas.mean), "Mean of the iteration times");
  record.add("p10_s", to_seconds(replicas.p10), "10th percentile");
  record.add("p50_s", to_seconds(replicas.p50), "Median of the iteration times");
  record.add("p90_s", to_seconds(replicas.p90), "90th percentile");
  record.add("p99_s", to_seconds(replicas.p99), "99th percentile");
}

void fill_sensitivity(Record& record, const Sensitivity& row) {
  record.add("iteration_s", to_seconds(row.iteration), "Iteration time with that improvement");
  record.add("change_s", to_seconds(row.change),
             "Change of the iteration time; negative if faster");
}

void fill_source(Record& record, const SpreadSource& source) {
  record.add("deviation", source.deviation, "Standard deviation of the logarithm of its costs");
  record.add("iteration_s_p10", source.alone.p10_s,
             "Start of the 10–90 % interval if nothing else varied");
  record.add("iteration_s_p90", source.alone.p90_s, "End of that interval");
  record.add("share", source.share, "Share in the sum of the squared widths");
}

void fill_bounds(Record& record, const FoldingBounds& bounds) {
  record.add("shortest_slices_s", to_seconds(bounds.shortest),
             "Iteration time if all slices were as short as the shortest");
  record.add("longest_slices_s", to_seconds(bounds.longest),
             "Iteration time if all slices were as long as the longest");
}

void fill_steady(Record& record, const SteadyState& steady) {
  std::vector<double> periods_s;
  for (const Picoseconds period : steady.periods) periods_s.push_back(to_seconds(period));
  record.add("periods_s", periods_s, "Times between the ends of consecutive iterations");
  record.add("settled", steady.settled, "True if the periods settled");
}

const char* folding_name(const Prediction& prediction) {
  if (!prediction.graph.folded) return "none";
  return prediction.folding_bounds ? "bounded" : "exact";
}

/// Rows by their names.
template <class Row>
std::vector<std::pair<std::string_view, Row>> by_names(const std::vector<Row>& rows) {
  std::vector<std::pair<std::string_view, Row>> named;
  for (const Row& row : rows) named.emplace_back(row.name, row);
  return named;
}

/// Adds the times, each with its interval.
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
      "Iteration time in seconds; with `steady`, the period",
      "10th percentile of the iteration time", "90th percentile of the iteration time");
  add("synchronisation", synchronisation_time(prediction), intervals.synchronisation,
      "Synchronisation time, from the first node's backward on");
  add("compute", compute, intervals.compute, "Forward and backward of the slowest node");
  add("exposed_communication", prediction.iteration - compute, intervals.exposed_communication,
      "`iteration_s` minus `compute_s`");
}

/// Adds the critical path, and the utilisation of machines' parts.
void fill_parts(Record& record, const Scenario& scenario, const Prediction& prediction) {
  record.object("replicas", prediction.replicas, "Iterations with jitter; with `replicas`",
                fill_replicas);
  record.by_name(
      "critical_path_share", [&] { return path_shares(prediction, Picoseconds{}); },
      "Shares of kinds of tasks in the critical path of the iteration",
      "Kind of task; wire: between Send and Recv, including waits for a core");
  record.by_name(
      "exposed_communication_share",
      [&] {
        const bool in_shards = !prediction.graph.groups.empty();
        return path_shares(prediction,
                           in_shards ? prediction.result.iteration : prediction.result.compute);
      },
      "Shares of kinds of tasks in the critical path behind the last Backward, which is the "
      "exposed communication",
      "As above");
  record.object("utilisation", prediction.utilisation,
                "Share of the iteration in which each part of the machines is busy",
                fill_utilisation);
  record.object(
      "slowdown",
      [&] {
        return std::pair(prediction.slowdowns.slowest(), slowdown_of_step(scenario, prediction));
      },
      "Causes of the slowdown of computation in a step, for the node that is slowed most",
      fill_slowdown);
  record.list("links", links_of(prediction.utilisation), "Links, one entry per direction",
              fill_link);
  const auto& changes = prediction.sensitivities;
  record.by_name("sensitivity", changes.empty() ? std::nullopt : std::optional(by_names(changes)),
                 "Effect of a 10 % improvement of one parameter; with `sensitivity`",
                 "Parameter improved by 10 %", fill_sensitivity);
  record.object("steady", prediction.steady,
                "Consecutive iterations without a barrier; with `steady`", fill_steady);
  record.list("critical_path", prediction.critical_path,
              "Tasks of the critical path, in their order",
              [&](Record& row, casync::TaskId id) { fill_task(row, prediction, id); });
}

}  // namespace

void fill(Record& record, const Simulated& simulated) {
  const Scenario& scenario = simulated.scenario;
  const Prediction& prediction = simulated.prediction;
  record.add("model", scenario.model.name, "The model's name");
  record.add("nodes", prediction.graph.nodes, "Nodes that synchronise");
  record.add("topology", scenario.plan.topology, "Topology of compressed gradients");
  record.add("algorithms", plans::used_algorithms(scenario.model, scenario.plan),
             "Algorithms that the plan uses");
  fill_times(record, scenario, prediction);
  record.add(
      "machines",
      [&] {
        return sentence(
            costs::describe_machines(scenario.profile, scenario.cluster, scenario.model));
      },
      "Profile, nodes, links and time of computation, in a sentence");
  record.add("bytes_sent_per_node", bytes_per_iteration(scenario, prediction),
             "Bytes that each node sends in one iteration");
  record.add("tasks", prediction.graph.tasks(), "Number of tasks of the simulated graph");
  record.add("folding", folding_name(prediction),
             "Folding of nodes that behave alike: none, exact, or bounded by two times");
  record.object("folding_bounds", prediction.folding_bounds,
                "Iteration times if all slices were equal; only for bounded folding", fill_bounds);
  record.add("orbits", prediction.graph.representatives(),
             "Number of simulated nodes, each of which stands for all nodes that behave alike");
  record.add("simulation_s", prediction.simulation_s, "Duration of the simulation, in seconds");
  record.add("tasks_per_s", prediction.graph.tasks() / prediction.simulation_s,
             "Tasks simulated per second");
  fill_parts(record, scenario, prediction);
  fill_mix(record, &scenario.cluster, &scenario.model);
  record.add("schedule", scenario.plan.schedule.text(), "Schedule of the synchronisation");
  record.add("steps_per_period", prediction.steps,
             "Number of steps after which the schedule repeats");
  fill_load(record, compute_utilisation(scenario, prediction), prediction.traffic);
  record.section(prediction.explains_interval, [&] {
    record.by_name(
        "interval_sources",
        [&] {
          return by_names(
              explain_interval(prediction.response, costs::spread_of(scenario.profile)));
        },
        "Sources of the interval's width; with `explain_interval`",
        "host, links, compute, model or iterations", fill_source);
  });
}

constinit const ResultForm kSimulateForm = {"simulate", "A simulated iteration",
                                            "Result of a simulate request", schema_of<Simulated>};

io::Document document(const Simulated& simulated) { return document_of(simulated); }

void fill(Record& record, const SimulatedChakra& simulated) {
  const traces::ChakraGraph& exported = simulated.exported;
  const Result& result = simulated.result;
  record.add("model", io::printable(exported.model), "The model's name");
  record.add("plan", io::printable(exported.plan), "Exported plan");
  record.add("nodes", exported.graph.nodes, "Number of nodes of the graph");
  record.add("tasks", exported.graph.tasks(), "Number of tasks");
  record.add("iteration_s", to_seconds(result.iteration), "Iteration time, in seconds");
  record.add("compute_s", to_seconds(result.compute), "Computation of the slowest node");
  record.add("exposed_communication_s", to_seconds(result.iteration - result.compute),
             "`iteration_s` minus `compute_s`");
  record.add("iteration_ps", result.iteration.count(), "Iteration time in picoseconds");
  record.add("exported_iteration_ps", exported.iteration.count(),
             "Exported iteration time in picoseconds");
  record.add("every_task_as_exported", simulated.as_exported(),
             "True if every task starts and ends as exported");
  record.add("bytes_sent_per_node", result.bytes_sent, "Bytes that each node sends");
}

constinit const ResultForm kChakraForm = {"simulate", "A simulated Chakra graph",
                                          "Result of hipress-sim with `chakra`",
                                          schema_of<SimulatedChakra>};

io::Document document(const SimulatedChakra& simulated) { return document_of(simulated); }

}  // namespace hipress::requests
