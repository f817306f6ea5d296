
#include "costs/assumed_spread.hpp"
#include "costs/description.hpp"
#include "plans/plan_builder.hpp"
#include "requests/mix_document.hpp"
#include "requests/simulate.hpp"
#include "sim/critical_path.hpp"

namespace hipress::requests {

using namespace sim;

namespace {

using Json = io::Document;

Json path_json(const Prediction& prediction) {
  Json steps = Json::list();
  const traces::Timeline& timeline = prediction.result.timeline;
  for (const casync::TaskId id : prediction.critical_path) {
    const casync::Task& task = prediction.graph[id];
    const bool has_gradient =
        task.kind != casync::Kind::kForward && task.kind != casync::Kind::kSteps;
    steps.push_back(
        {{"kind", casync::to_string(task.kind)},
         {"gradient", has_gradient ? Json(prediction.names[task.gradient]) : Json()},
         {"node", task.node},
         {"start_s", casync::to_seconds(timeline.start[id])},
         {"end_s", casync::to_seconds(timeline.end[id])},
         {"slowed_s", timeline.slowed.empty() ? 0.0 : casync::to_seconds(timeline.slowed[id])}});
  }
  return steps;
}

/// Shares of the path from `begin` to its end, by kind; 0 for kinds that it does not have.
Json share_json(const Prediction& prediction, Picoseconds begin) {
  const PathTimes times =
      path_times(prediction.graph, prediction.result.timeline, prediction.critical_path, begin);
  const Picoseconds length = prediction.result.iteration - begin;
  const auto share = [&](Picoseconds time) {
    return length.count() > 0
               ? static_cast<double>(time.count()) / static_cast<double>(length.count())
               : 0.0;
  };
  Json shares;
  for (int kind = 0; kind < casync::kKinds; ++kind) {
    if (static_cast<casync::Kind>(kind) == casync::Kind::kRecv) continue;  // takes no time
    shares[casync::to_string(static_cast<casync::Kind>(kind))] =
        share(times.by_kind[static_cast<std::size_t>(kind)]);
  }
  shares["wire"] = share(times.wire);
  return shares;
}

Json utilisation_json(const Utilisation& use) {
  Json nodes = Json::list(), hosts = Json::list();
  for (std::size_t node = 0; node < use.nodes.size(); ++node) {
    const NodeUse& at = use.nodes[node];
    nodes.push_back({{"node", node},
                     {"compute", at.compute},
                     {"codec", at.codec},
                     {"local", at.local},
                     {"egress", at.egress.utilisation},
                     {"ingress", at.ingress.utilisation},
                     {"both_ways", at.both_ways}});
  }
  for (const HostUse& host : use.hosts) {
    hosts.push_back({{"host", host.host}, {"cores", host.utilisation}});
  }
  return {{"nodes", nodes}, {"hosts", hosts}};
}

/// Of the node whose computation is slowed most, a step of it.
Json slowdown_json(const Scenario& scenario, const Prediction& prediction) {
  const Slowdown slowdown = slowdown_of_step(scenario, prediction);
  return {{"node", prediction.slowdowns.slowest()},
          {"by_codecs_s", casync::to_seconds(slowdown.by_codecs)},
          {"by_transfers_s", casync::to_seconds(slowdown.by_transfers)},
          {"by_computation_s", casync::to_seconds(slowdown.by_computation)}};
}

Json links_json(const Utilisation& use) {
  Json links = Json::list();
  const auto add = [&](const char* of, std::size_t number, const char* direction,
                       const LinkUse& link) {
    links.push_back({{of, number},
                     {"direction", direction},
                     {"bytes", link.bytes},
                     {"messages", link.messages},
                     {"utilisation", link.utilisation},
                     {"busy", link.busy}});
  };
  for (std::size_t node = 0; node < use.nodes.size(); ++node) {
    add("node", node, "egress", use.nodes[node].egress);
    add("node", node, "ingress", use.nodes[node].ingress);
  }
  for (std::size_t host = 0; host < use.host_links.size(); ++host) {
    add("host", host, "nic out", use.host_links[host].out);
    add("host", host, "nic in", use.host_links[host].in);
  }
  for (std::size_t rack = 0; rack < use.rack_links.size(); ++rack) {
    add("rack", rack, "rack up", use.rack_links[rack].out);
    add("rack", rack, "rack down", use.rack_links[rack].in);
  }
  return links;
}

Json replicas_json(const std::optional<Replicas>& replicas) {
  if (!replicas) return nullptr;
  return {{"count", replicas->count},
          {"mean_s", casync::to_seconds(replicas->mean)},
          {"p10_s", casync::to_seconds(replicas->p10)},
          {"p50_s", casync::to_seconds(replicas->p50)},
          {"p90_s", casync::to_seconds(replicas->p90)},
          {"p99_s", casync::to_seconds(replicas->p99)}};
}

Json sensitivity_json(const std::vector<Sensitivity>& rows) {
  if (rows.empty()) return nullptr;
  Json sensitivities;
  for (const Sensitivity& row : rows) {
    sensitivities[std::string(row.name)] = {{"iteration_s", casync::to_seconds(row.iteration)},
                                            {"change_s", casync::to_seconds(row.change)}};
  }
  return sensitivities;
}

const char* folding_name(const Prediction& prediction) {
  if (!prediction.graph.folded) return "none";
  return prediction.folding_bounds ? "bounded" : "exact";
}

Json folding_bounds_json(const Prediction& prediction) {
  if (!prediction.folding_bounds) return nullptr;
  return {{"shortest_slices_s", casync::to_seconds(prediction.folding_bounds->shortest)},
          {"longest_slices_s", casync::to_seconds(prediction.folding_bounds->longest)}};
}

Json sources_json(const Scenario& scenario, const Prediction& prediction) {
  Json sources;
  for (const SpreadSource& source :
       explain_interval(prediction.response, costs::spread_of(scenario.profile))) {
    sources[std::string(source.name)] = {{"deviation", source.deviation},
                                         {"iteration_s_p10", source.alone.p10_s},
                                         {"iteration_s_p90", source.alone.p90_s},
                                         {"share", source.share}};
  }
  return sources;
}

Json steady_json(const Prediction& prediction) {
  if (!prediction.steady) return nullptr;
  Json periods = Json::list();
  for (const Picoseconds period : prediction.steady->periods) {
    periods.push_back(casync::to_seconds(period));
  }
  return {{"periods_s", periods}, {"settled", prediction.steady->settled}};
}

/// The times, each with its interval beside it.
Json times_json(const Scenario& scenario, const Prediction& prediction) {
  const Picoseconds compute = compute_time(prediction);
  const Intervals intervals = intervals_of(scenario, prediction);
  Json times;
  const auto add = [&](const std::string& name, Picoseconds time, const Interval& interval) {
    times[name + "_s"] = casync::to_seconds(time);
    times[name + "_s_p10"] = interval.p10_s;
    times[name + "_s_p90"] = interval.p90_s;
  };
  add("iteration", prediction.iteration, intervals.iteration);
  add("synchronisation", synchronisation_time(prediction), intervals.synchronisation);
  add("compute", compute, intervals.compute);
  add("exposed_communication", prediction.iteration - compute, intervals.exposed_communication);
  return times;
}

/// What the schedule comes to: the share of computation, with its interval, and what is sent.
Json schedule_json(const Scenario& scenario, const Prediction& prediction) {
  const ComputeUtilisation utilisation = compute_utilisation(scenario, prediction);
  const Traffic& traffic = prediction.traffic;
  return {
      {"schedule", scenario.plan.schedule.text()}, {"steps_per_period", prediction.steps},
      {"utilization", utilisation.share},          {"utilization_p10", utilisation.p10},
      {"utilization_p90", utilisation.p90},        {"bytes_per_step", traffic.bytes_per_step},
      {"bytes_per_day", traffic.bytes_per_day},    {"peak_bits_per_s", traffic.peak_bits_per_s}};
}

}  // namespace

io::Document document(const Simulated& simulated) {
  const Scenario& scenario = simulated.scenario;
  const Prediction& prediction = simulated.prediction;
  const Result& result = prediction.result;
  Json algorithms = Json::list();
  for (const std::string& name : plans::used_algorithms(scenario.model, scenario.plan)) {
    algorithms.push_back(name);
  }
  Json report = {{"model", scenario.model.name},
                 {"nodes", prediction.graph.nodes},
                 {"topology", scenario.plan.topology},
                 {"algorithms", algorithms}};
  report.update(times_json(scenario, prediction));
  report.update({{"machines", sentence(costs::describe_machines(scenario.profile, scenario.cluster,
                                                                scenario.model))},
                 {"bytes_sent_per_node", bytes_per_iteration(scenario, prediction)},
                 {"tasks", prediction.graph.tasks()},
                 {"folding", folding_name(prediction)},
                 {"folding_bounds", folding_bounds_json(prediction)},
                 {"orbits", prediction.graph.representatives()},
                 {"simulation_s", prediction.simulation_s},
                 {"tasks_per_s", prediction.graph.tasks() / prediction.simulation_s},
                 {"replicas", replicas_json(prediction.replicas)},
                 {"critical_path_share", share_json(prediction, Picoseconds{})},
                 {"exposed_communication_share",
                  share_json(prediction,
                             prediction.graph.groups.empty() ? result.compute : result.iteration)},
                 {"utilisation", utilisation_json(prediction.utilisation)},
                 {"slowdown", slowdown_json(scenario, prediction)},
                 {"links", links_json(prediction.utilisation)},
                 {"sensitivity", sensitivity_json(prediction.sensitivities)},
                 {"steady", steady_json(prediction)},
                 {"critical_path", path_json(prediction)}});
  add_mix(scenario.cluster, scenario.model, report);
  report.update(schedule_json(scenario, prediction));
  if (prediction.explains_interval) {
    report["interval_sources"] = sources_json(scenario, prediction);
  }
  return report;
}

}  // namespace hipress::requests
