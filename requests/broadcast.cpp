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

namespace hipress::requests {

using namespace planner;

namespace {

using Json = io::Document;

constexpr std::uint32_t kDefaultNodes = 16;
constexpr double kBudget_s = 10;

std::string output_of(const PlanRequest& options) {
  if (options.output.empty() || options.yaml()) return options.output;
  throw io::InputError(
      fmt::format("`output` {}: only a plan YAML can say what a broadcast is; take `output` X.yaml",
                  options.output));
}

models::Model model_of(const PlanRequest& options) {
  const BroadcastRequest& asked = options.broadcast;
  const std::string& dtype = options.request.times.dtype;
  if (!asked.bytes.empty() && options.input_given) {
    throw io::InputError("`bytes` and `input` both say what is sent: leave one of them out");
  }
  if (!asked.bytes.empty()) {
    return plans::one_tensor(io::parse_size(asked.bytes, "`bytes`"),
                             plans::parse_dtype(dtype.empty() ? "float32" : dtype));
  }
  if (!options.input_given) {
    throw io::InputError("`job` broadcast needs `bytes`, say 64MB, or `input` with a model");
  }
  if (!dtype.empty()) {
    throw io::InputError("`dtype` is of `bytes`: a model says its own; leave it out");
  }
  return plans::as_parameters(models::read_model(options.request.input));
}

std::vector<std::string> topologies_of(const PlanRequest& options) {
  std::string name = options.request.topology;
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!options.request.topology_given || name == "best") return {};
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

/// Unless the command line names algorithms, those that lose nothing: parameters that nodes do not
/// share stay different.
std::vector<std::string> algorithms_of(const PlanRequest& options, const costs::Profile& profile,
                                       const models::Model& model) {
  if (!options.algorithms_given) return lossless_algorithms(profile, model);
  if (options.request.algorithms == "none") return {};
  std::vector<std::string> names = named_algorithms(options.request.algorithms);
  for (const std::string& name : names) algorithm(name);  // refuses what is unknown
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
      loaded(costs::load(asked.request.machines, asked.request.nodes, kDefaultNodes)),
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

namespace {

/// InputError for a field that plans of broadcasts know nothing of.
void refuse_others_fields(const PlanRequest& request) {
  const auto refuse = [](const char* field, bool given) {
    if (!given) return;
    throw io::InputError(fmt::format(
        "{} is of plans that average gradients: leave it out, or take `job` mean", field));
  };
  const planner::Request& asked = request.request;
  const PlanRequest usual;
  refuse("`schedule`", !request.schedules.empty());
  refuse("`wrap`", !request.wraps.empty());
  refuse("`shards_by`", !request.shards_by.empty());
  refuse("`gpu_memory`", !request.gpu_memory.empty());
  refuse("`optimizer`", request.optimizer != usual.optimizer);
  refuse("`required_bandwidth`", request.required_bandwidth);
  refuse("`utilization`", !request.utilization.empty());
  refuse("`break_even`", !request.break_even.empty());
  refuse("`advise`", request.advise);
  refuse("`search`", !asked.search.empty());
  refuse("`grouping`", asked.grouping != usual.request.grouping);
  refuse("`seed`", asked.seed != usual.request.seed);
  refuse("`disable_pass`", !asked.analysis.disabled_passes.empty());
  if (!asked.times.says_computation()) return;
  throw io::InputError(
      "`compute_time` and `forward`: a broadcast waits for no computation; leave them out");
}

}  // namespace

std::unique_ptr<const PlannedBroadcast> plan_broadcast(const PlanRequest& request,
                                                       const Hooks& hooks) {
  refuse_others_fields(request);
  if (request.request.analysis.any()) {
    throw io::InputError(
        "`plan`, `explain`, `compare` and `robust` are for `job` mean: leave them out; hipress-sim "
        "`plan` says more of a broadcast's plan");
  }
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

io::Document document(const PlannedBroadcast& planned) {
  const BroadcastResult& found = planned.found;
  const std::optional<sim::Interval>& range = planned.range;
  const auto to_json = [](const BroadcastChoice& choice) {
    return Json{{"topology", choice.topology},       {"algorithm", codec_name(choice)},
                {"chunks", choice.chunks},           {"chunk_elements", choice.chunk_elements},
                {"predicted_s", choice.seconds},     {"counts", choice.counts},
                {"simulations", choice.simulations}, {"proven", choice.proven}};
  };
  Json json = {{"operation", "broadcast"},
               {"root", found.plan.root},
               {"nodes", found.plan.nodes},
               {"tensors", planned.model.gradients.size()},
               {"elements", models::total_elements(planned.model)}};
  json.update(to_json(found.best));
  json["proven"] = found.proven;
  json["predicted_s_p10"] = range ? Json(range->p10_s) : Json();
  json["predicted_s_p90"] = range ? Json(range->p90_s) : Json();
  json["choices"] = Json::list();
  for (const BroadcastChoice& choice : found.choices) json["choices"].push_back(to_json(choice));
  json["output"] = planned.output.empty() ? Json() : Json(planned.output);
  return json;
}

void refuse_broadcast_fields(const BroadcastRequest& options) {
  const auto refuse = [](const char* option, bool given) {
    if (!given) return;
    throw io::InputError(
        fmt::format("{} is for `job` broadcast: add that, or leave {} out", option, option));
  };
  refuse("`bytes`", !options.bytes.empty());
  refuse("`root`", options.root.has_value());
  refuse("`chunks`", options.chunks.has_value());
  refuse("`lossless`", options.lossless);
}

}  // namespace hipress::requests
