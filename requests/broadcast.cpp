#include "requests/broadcast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "casync/topology.hpp"
#include "costs/assumed_spread.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/memory.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "planner/timing/forecast.hpp"
#include "plans/broadcast.hpp"
#include "plans/plan_file.hpp"
#include "requests/result_forms.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

constexpr std::uint32_t kDefaultNodes = 16;
constexpr double kBudget_s = 10;

std::string output_of(const PlanRequest& options) {
  if (options.output.empty() || options.yaml()) return options.output;
  throw io::InputError(fmt::format(
      "`output` {}: only a plan YAML can hold a broadcast; take `output` X.yaml", options.output));
}

models::Model model_of(const PlanRequest& options) {
  const BroadcastRequest& asked = options.broadcast;
  const std::string& dtype = options.request.times.dtype;
  if (!asked.bytes.empty() && options.is_given("input")) {
    throw io::InputError(
        "`bytes` and `input` both define the tensors to send: leave one of them out");
  }
  if (!asked.bytes.empty()) {
    return plans::one_tensor(io::parse_size(asked.bytes, "`bytes`"),
                             plans::parse_dtype(dtype.empty() ? "float32" : dtype));
  }
  if (!options.is_given("input")) {
    throw io::InputError("`job` broadcast needs `bytes`, say 64MB, or `input` with a model");
  }
  if (!dtype.empty()) {
    throw io::InputError("`dtype` belongs to `bytes`: a model states its own; leave it out");
  }
  return plans::as_parameters(models::read_model(options.request.input));
}

std::vector<std::string> topologies_of(const PlanRequest& options) {
  std::string name = options.request.topology;
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!options.is_given("topology") || name == "best") return {};
  const std::string known = casync::topology_names(casync::Operation::kBroadcast);
  std::vector<std::string_view> names;
  for (const casync::Topology* row : casync::topologies_for(casync::Operation::kBroadcast))
    names.push_back(row->name);
  try {
    const casync::Topology& topology = casync::find_topology(name);
    if (topology.operation == casync::Operation::kBroadcast) return {std::string(topology.name)};
  } catch (const std::invalid_argument&) {
    throw io::InputError(
        fmt::format("unknown topology {}{}for `job` broadcast take one of {}, or "
                    "BEST",
                    io::quote(options.request.topology), io::before_known(name, names), known));
  }
  throw io::InputError(fmt::format(
      "topology {} does not broadcast: for `job` broadcast take one of {}, or BEST", name, known));
}

/// Algorithms to try. The default is the lossless ones: with others, the nodes' parameters would
/// differ, and stay different.
std::vector<std::string> algorithms_of(const PlanRequest& options, const costs::Profile& profile,
                                       const models::Model& model) {
  if (!options.is_given("algorithm")) return lossless_algorithms(profile, model);
  if (options.request.algorithms == "none") return {};
  std::vector<std::string> names = named_algorithms(options.request.algorithms);
  for (const std::string& name : names) algorithm(name);  // throws for unknown algorithms
  if (!options.broadcast.lossless) return names;
  const std::vector<std::string> lossy = lossy_of(names, model);
  if (lossy.empty()) return names;
  throw io::InputError(fmt::format(
      "`lossless`: {} changes tensors of this dtype; leave it out of `algorithm`, or leave "
      "`lossless` out",
      fmt::join(lossy, ", ")));
}

BroadcastResult search(const PlannedBroadcast& planned) {
  const PlanRequest& asked = planned.request;
  return planner::plan_broadcast({.model = planned.model,
                                  .machines = *planned.machines,
                                  .root = asked.broadcast.root.value_or(0),
                                  .topologies = planned.topologies,
                                  .algorithms = planned.algorithms,
                                  .chunks = asked.broadcast.chunks,
                                  .evaluations = asked.request.evaluations.value_or(INT64_MAX)});
}

std::optional<sim::Interval> interval_of(const PlannedBroadcast& planned) {
  const auto response = forecast(planned.model, planned.found.plan, sim::TransferOrder::kReady,
                                 planned.found.best.seconds, *planned.machines);
  if (!response) return std::nullopt;
  return sim::interval(*response, costs::spread_of(planned.loaded.profile));
}

}  // namespace

std::string codec_name(const BroadcastChoice& choice) {
  return choice.algorithm.empty() ? "none" : choice.algorithm;
}

PlannedBroadcast::PlannedBroadcast(const PlanRequest& asked, const Hooks& hooks)
    : request(asked),
      output(output_of(asked)),
      model(model_of(asked)),
      loaded(costs::load(asked.machines(), asked.request.nodes, kDefaultNodes)),
      topologies(topologies_of(asked)),
      algorithms(algorithms_of(asked, loaded.profile, model)) {
  for (const std::string& warning : loaded.warnings) warn(hooks, warning);
  if (!output.empty()) {
    io::require_writable(output);
    io::refuse_input(output);
  }
  machines.emplace(
      Machines{loaded.profile, loaded.cluster, sim::parse_network(asked.request.network)});
  machines->memory_bytes = static_cast<double>(io::available_memory());
  machines->budget = std::make_shared<SimulationBudget>(
      asked.request.evaluations ? 1e9 : asked.request.budget_s.value_or(kBudget_s),
      hooks.interrupted);
  if (hooks.optimises) hooks.optimises();
  found = search(*this);
  range = interval_of(*this);
}

std::unique_ptr<const PlannedBroadcast> plan_broadcast(const PlanRequest& request,
                                                       const Hooks& hooks) {
  PlanRequest known = request;
  const Fields all = fields(known);
  refuse_unfit(all);
  warn_of_idle(all, hooks);
  auto planned = std::make_unique<PlannedBroadcast>(request, hooks);
  const costs::Profile& profile = planned->loaded.profile;
  if (!planned->output.empty()) {
    plans::write_plan_yaml(planned->output, planned->model, planned->found.plan,
                           {.predicted_iteration_s = planned->found.best.seconds,
                            .search = "broadcast",
                            .profile = profile.name + " " + profile.fingerprint,
                            .network = request.request.network});
  }
  for (const std::string& diagnostic : planned->loaded.diagnostics) inform(hooks, diagnostic);
  return planned;
}

namespace {

void fill_choice(Record& record, const BroadcastChoice& choice) {
  record.add("topology", choice.topology, "Topology of the messages");
  record.add("algorithm", codec_name(choice), "Algorithm that encodes the tensors");
  record.add("chunks", choice.chunks, "Number of chunks per tensor");
  record.add("chunk_elements", choice.chunk_elements, "Elements per chunk");
  record.add("predicted_s", choice.seconds, "Simulated time, in seconds");
  record.add("counts", choice.counts, "Number of possible chunk counts");
  record.add("simulations", choice.simulations, "Number of simulated chunk counts");
  record.add("proven", choice.proven, "True if no chunk count is faster");
}

}  // namespace

/// `planned` is null for the schema.
void fill(Record& record, const PlannedBroadcast* planned) {
  const BroadcastResult found = planned != nullptr ? planned->found : BroadcastResult();
  const auto end = [&](double sim::Interval::*of) {
    const bool known = planned != nullptr && planned->range;
    return known ? std::optional(*planned->range.*of) : std::nullopt;
  };
  record.add("operation", "broadcast", "broadcast");
  record.add("root", found.plan.root, "Node that holds the values");
  record.add("nodes", found.plan.nodes, "Number of nodes, including the root");
  record.add(
      "tensors", [&] { return planned->model.gradients.size(); }, "Number of tensors");
  record.add(
      "elements", [&] { return models::total_elements(planned->model); },
      "Number of elements in all tensors");
  fill_choice(record, found.best);
  record.add("proven", found.proven, "True if no other choice is faster");
  record.add("predicted_s_p10", end(&sim::Interval::p10_s),
             "10th percentile of the time, in seconds");
  record.add("predicted_s_p90", end(&sim::Interval::p90_s),
             "90th percentile of the time, in seconds");
  record.list("choices", found.choices, "Best choice of each topology and algorithm, fastest first",
              fill_choice);
  const bool written = planned != nullptr && !planned->output.empty();
  record.add("output", written ? std::optional(planned->output) : std::nullopt,
             "Plan file that was written; null if none");
}

constinit const ResultForm kBroadcastForm = {"plan", "A broadcast's plan",
                                             "Result of a plan request with `job` broadcast",
                                             schema_of<const PlannedBroadcast*>};

io::Document document(const PlannedBroadcast& planned) { return document_of(&planned); }

}  // namespace hipress::requests
