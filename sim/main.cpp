// hipress-sim: predicts one iteration of a plan.

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "casync/strategy.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "io/tool.hpp"
#include "plans/plan_file.hpp"
#include "sim/critical_path.hpp"
#include "sim/simulator.hpp"

namespace {

using namespace hipress;
using Json = nlohmann::ordered_json;

struct Options {
  std::string input;
  std::string plan;
  std::string topology = "PS";
  std::uint32_t nodes = 0;  ///< 0: as the cluster file says
  std::string algorithm = "onebit";
  std::string profile = "sosp21";
  std::string cluster;
  std::string network = "fair";
  std::string trace;
  bool json = false;
};

/// What is simulated.
struct Setup {
  models::Model model;
  costs::Profile profile;
  costs::Cluster cluster;
  plans::ResolvedPlan plan;
  sim::Network network;
};

/// What came out.
struct Prediction {
  casync::TaskGraph graph;
  sim::Result result;
  std::vector<casync::TaskId> critical_path;
  double simulation_s = 0;
};

void declare_options(CLI::App& app, Options& options) {
  app.add_option("--input", options.input,
                 "Gradients: name,elements lines, CSV, model YAML or a shipped model")
      ->required();
  app.add_option("--plan", options.plan,
                 "Plan file, or none, all, threshold[:ELEMENTS], or an algorithm's name")
      ->required();
  app.add_option("--topology", options.topology, "PS or RING")->capture_default_str();
  app.add_option("--nnodes", options.nodes, "Number of nodes (default: the cluster's, else 16)")
      ->check(CLI::Range(1u, 1u << 20));
  app.add_option("--algorithm", options.algorithm, "What a y without a fifth field means")
      ->capture_default_str();
  app.add_option("--profile", options.profile, "Costs: a profile.yaml or a shipped profile")
      ->capture_default_str();
  app.add_option("--cluster", options.cluster, "Cluster YAML; what it leaves out is the profile's");
  app.add_option("--network", options.network, "port (one message at a time) or fair (max-min)")
      ->capture_default_str();
  app.add_option("--trace", options.trace, "Write the timeline as Chrome/Perfetto JSON");
  app.add_flag("--json", options.json, "Print one JSON object instead of the report");
}

costs::Cluster load_cluster(const Options& options, const costs::Profile& profile) {
  constexpr std::uint32_t kDefaultNodes = 16;
  if (!options.cluster.empty()) return costs::read_cluster(options.cluster, profile, options.nodes);
  return costs::cluster_from_profile(profile, options.nodes > 0 ? options.nodes : kDefaultNodes);
}

Setup load(const Options& options) {
  const sim::Network network = sim::parse_network(options.network);
  const std::string strategy(casync::find_strategy(options.topology).name);
  models::Model model = models::read_model(options.input);
  costs::Profile profile = costs::read_profile(options.profile);
  costs::Cluster cluster = load_cluster(options, profile);
  plans::ResolvedPlan plan = plans::resolve_plan(options.plan, {.model = model,
                                                                .strategy = strategy,
                                                                .nodes = cluster.nodes,
                                                                .algorithm = options.algorithm});
  return {std::move(model), std::move(profile), std::move(cluster), std::move(plan), network};
}

Prediction predict(const Setup& setup) {
  const sim::TaskCosts costs(setup.profile, setup.plan.plan.algorithms);
  Prediction prediction;
  prediction.graph = casync::expand(setup.model, setup.plan.plan);
  const auto start = std::chrono::steady_clock::now();
  prediction.result = sim::simulate(prediction.graph, costs, setup.cluster,
                                    {.network = setup.network, .record_timeline = true});
  prediction.simulation_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  prediction.critical_path = sim::critical_path(prediction.graph, prediction.result.timeline);
  return prediction;
}

double exposed_communication_s(const sim::Result& result) {
  return casync::to_seconds(result.iteration - result.compute);
}

double synchronisation_s(const Setup& setup, const sim::Result& result) {
  return casync::to_seconds(result.iteration - casync::from_seconds(setup.model.forward_s));
}

double tasks_per_s(const Prediction& prediction) {
  return prediction.graph.tasks() / prediction.simulation_s;
}

Json critical_path_json(const Setup& setup, const Prediction& prediction) {
  Json steps = Json::array();
  const traces::Timeline& timeline = prediction.result.timeline;
  for (const casync::TaskId id : prediction.critical_path) {
    const casync::Task& task = prediction.graph[id];
    const bool has_gradient = task.kind != casync::Kind::kForward;
    steps.push_back(
        {{"kind", casync::to_string(task.kind)},
         {"gradient", has_gradient ? Json(setup.model.gradients[task.gradient].name) : Json()},
         {"node", task.node},
         {"start_s", casync::to_seconds(timeline.start[id])},
         {"end_s", casync::to_seconds(timeline.end[id])}});
  }
  return steps;
}

void print_json(const Setup& setup, const Prediction& prediction) {
  const sim::Result& result = prediction.result;
  const Json report = {{"iteration_s", casync::to_seconds(result.iteration)},
                       {"synchronisation_s", synchronisation_s(setup, result)},
                       {"compute_s", casync::to_seconds(result.compute)},
                       {"exposed_communication_s", exposed_communication_s(result)},
                       {"bytes_sent_per_node", result.bytes_sent},
                       {"tasks", prediction.graph.tasks()},
                       {"folding", "none"},
                       {"orbits", prediction.graph.nodes},
                       {"simulation_s", prediction.simulation_s},
                       {"tasks_per_s", tasks_per_s(prediction)},
                       {"critical_path", critical_path_json(setup, prediction)}};
  std::cout << report.dump(2) << '\n';
}

/// "encode 1.2ms, send 8.1ms, on the wire or waiting 0.4ms": where the critical path spends its
/// time.
std::string describe_critical_path(const Prediction& prediction) {
  const traces::Timeline& timeline = prediction.result.timeline;
  std::map<casync::Kind, casync::Picoseconds> spent;
  casync::Picoseconds total{};
  for (const casync::TaskId id : prediction.critical_path) {
    const casync::Picoseconds length = timeline.end[id] - timeline.start[id];
    spent[prediction.graph[id].kind] += length;
    total += length;
  }
  std::string text;
  for (const auto& [kind, time] : spent) {
    if (time.count() == 0) continue;
    text += fmt::format("{} {}, ", casync::to_string(kind),
                        io::format_duration(casync::to_seconds(time)));
  }
  const casync::Picoseconds rest = prediction.result.iteration - total;
  return text + "on the wire " + io::format_duration(casync::to_seconds(rest));
}

/// "33.7MB", or "33.7MB to 40.1MB" where nodes differ visibly.
std::string describe_bytes_sent(const std::vector<std::int64_t>& bytes_sent) {
  const auto [least, most] = std::minmax_element(bytes_sent.begin(), bytes_sent.end());
  const std::string low = io::format_size(*least);
  const std::string high = io::format_size(*most);
  return low == high ? low : low + " to " + high;
}

void print_report(const Setup& setup, const Prediction& prediction) {
  const sim::Result& result = prediction.result;
  const auto line = [](std::string_view label, const std::string& value) {
    fmt::print(std::cout, "{:<24}{}\n", label, value);
  };
  const auto time = [](double seconds) { return io::format_duration(seconds); };
  line("plan", fmt::format("{} gradients, {}, N = {}", setup.model.gradients.size(),
                           setup.plan.plan.strategy, setup.plan.plan.nodes));
  line("costs",
       fmt::format("profile {}, network {}", setup.profile.name, sim::to_string(setup.network)));
  line("iteration", time(casync::to_seconds(result.iteration)));
  line("synchronisation", time(synchronisation_s(setup, result)));
  line("compute", time(casync::to_seconds(result.compute)));
  line("exposed communication", time(exposed_communication_s(result)));
  line("sent per node", describe_bytes_sent(result.bytes_sent));
  line("critical path", describe_critical_path(prediction));
  line("tasks", fmt::format("{} in {}, {:.3g} a second", prediction.graph.tasks(),
                            time(prediction.simulation_s), tasks_per_s(prediction)));
}

void write_trace(const std::string& path, const Setup& setup, const Prediction& prediction) {
  std::vector<std::string> names;
  for (const models::Gradient& gradient : setup.model.gradients) names.push_back(gradient.name);
  io::write_file(path, [&](std::ostream& out) {
    traces::write_chrome_trace(out, prediction.graph, names, {&prediction.result.timeline});
  });
}

int run(const Options& options) {
  const Setup setup = load(options);
  const Prediction prediction = predict(setup);
  if (!options.trace.empty()) write_trace(options.trace, setup, prediction);
  options.json ? print_json(setup, prediction) : print_report(setup, prediction);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const io::ToolInfo info = {
      .name = "hipress-sim",
      .purpose =
          "Predicts one iteration of a plan: when every gradient is synchronised, and what that "
          "waits for.",
      .example =
          "hipress-sim --input vgg19 --plan all --topology RING --nnodes 8 --algorithm onebit"};
  return io::run_tool(
      argc, argv, info, [&](CLI::App& app) { declare_options(app, options); },
      [&] { return run(options); });
}
