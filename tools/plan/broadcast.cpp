#include "tools/plan/broadcast.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "casync/strategy.hpp"
#include "costs/description.hpp"
#include "costs/machine_options.hpp"
#include "costs/spread.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/interrupts.hpp"
#include "io/memory.hpp"
#include "io/quantity.hpp"
#include "io/spelling.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "planner/broadcast/broadcast.hpp"
#include "planner/timing/forecast.hpp"
#include "plans/broadcast.hpp"
#include "plans/plan_file.hpp"
#include "tools/frame.hpp"

namespace hipress::planner {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kDefaultNodes = 16;
constexpr double kBudget_s = 10;
constexpr std::string_view kBroadcastOutput = "broadcast.yaml";

/// What is asked for, with what it is planned on.
struct Broadcast {
  explicit Broadcast(const Options& given);
  Broadcast(const Broadcast&) = delete;
  Broadcast& operator=(const Broadcast&) = delete;

  const Options& options;
  const std::string output;
  const models::Model model;
  costs::LoadedMachines loaded;
  std::optional<Machines> machines;
  std::vector<std::string> strategies;
  std::vector<std::string> algorithms;
};

std::string output_of(const Options& options) {
  if (options.yaml()) return options.output;
  if (options.output == kDefaultOutput) return std::string(kBroadcastOutput);
  throw io::InputError(
      fmt::format("--output {}: only a plan YAML can say what a broadcast is; take --output X.yaml",
                  options.output));
}

models::Model model_of(const Options& options) {
  const BroadcastOptions& asked = options.broadcast;
  if (!asked.bytes.empty() && options.input_given) {
    throw io::InputError("--bytes and --input both say what is sent: leave one of them out");
  }
  if (!asked.bytes.empty()) {
    return plans::one_tensor(io::parse_size(asked.bytes, "--bytes"),
                             plans::parse_dtype(asked.dtype.value_or("float32")));
  }
  if (!options.input_given) {
    throw io::InputError("--job broadcast needs --bytes, say 64MB, or --input with a model");
  }
  if (asked.dtype) {
    throw io::InputError("--dtype is of --bytes: a model says its own; leave it out");
  }
  if (!options.request.times.compute_time.empty() || !options.request.times.forward.empty()) {
    throw io::InputError(
        "--compute-time and --forward: a broadcast waits for no computation; leave them out");
  }
  return plans::as_parameters(models::read_model(options.request.input));
}

std::vector<std::string> strategies_of(const Options& options) {
  std::string name = options.request.topology;
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!options.request.topology_given || name == "best") return {};
  const std::string known = casync::strategy_names(casync::Operation::kBroadcast);
  try {
    const casync::Strategy& strategy = casync::find_strategy(name);
    if (strategy.operation == casync::Operation::kBroadcast) return {std::string(strategy.name)};
  } catch (const std::invalid_argument&) {
    throw io::InputError(
        fmt::format("unknown topology {}; for --job broadcast take one of {}, or "
                    "BEST",
                    io::quote(options.request.topology), known));
  }
  throw io::InputError(fmt::format(
      "topology {} does not broadcast: for --job broadcast take one of {}, or BEST", name, known));
}

/// Unless the command line names algorithms, those that lose nothing: parameters that nodes do not
/// share stay different.
std::vector<std::string> algorithms_of(const Options& options, const costs::Profile& profile,
                                       const models::Model& model) {
  if (!options.algorithms_given) return lossless_algorithms(profile, model);
  if (options.request.algorithms == "none") return {};
  std::vector<std::string> names = kernels::split_algorithms(options.request.algorithms);
  for (const std::string& name : names) algorithm(name);  // refuses what is unknown
  if (!options.broadcast.lossless) return names;
  const std::vector<std::string> lossy = lossy_of(names, model);
  if (lossy.empty()) return names;
  throw io::InputError(fmt::format(
      "--lossless: {} changes tensors of this dtype; leave it out of --algorithm, or leave "
      "--lossless out",
      fmt::join(lossy, ", ")));
}

Broadcast::Broadcast(const Options& given)
    : options(given),
      output(output_of(given)),
      model(model_of(given)),
      loaded(costs::load(given.request.machines, given.request.nodes, kDefaultNodes)),
      strategies(strategies_of(given)),
      algorithms(algorithms_of(given, loaded.profile, model)) {
  for (const std::string& warning : loaded.warnings) tools::warn(warning);
  io::require_writable(output);
  io::refuse_input(output);
  machines.emplace(
      Machines{loaded.profile, loaded.cluster, sim::parse_network(options.request.network)});
  machines->memory_bytes = static_cast<double>(io::available_memory());
  machines->budget = std::make_shared<SimulationBudget>(
      options.request.evaluations ? 1e9 : options.request.budget_s.value_or(kBudget_s),
      &io::InterruptScope::flag());
}

BroadcastResult plan(const Broadcast& broadcast) {
  const Options& options = broadcast.options;
  return plan_broadcast({.model = broadcast.model,
                         .machines = *broadcast.machines,
                         .root = options.broadcast.root.value_or(0),
                         .strategies = broadcast.strategies,
                         .algorithms = broadcast.algorithms,
                         .chunks = options.broadcast.chunks,
                         .evaluations = options.request.evaluations.value_or(INT64_MAX)});
}

std::optional<sim::Interval> interval_of(const Broadcast& broadcast, const BroadcastResult& found) {
  const auto response = forecast(broadcast.model, found.plan, sim::TransferOrder::kReady,
                                 found.best.seconds, *broadcast.machines);
  if (!response) return std::nullopt;
  return sim::interval(*response, costs::spread_of(broadcast.loaded.profile));
}

std::string codec_name(const BroadcastChoice& choice) {
  return choice.algorithm.empty() ? "none" : choice.algorithm;
}

void print_json(const Broadcast& broadcast, const BroadcastResult& found,
                const std::optional<sim::Interval>& range) {
  const auto to_json = [](const BroadcastChoice& choice) {
    return Json{{"topology", choice.strategy},       {"algorithm", codec_name(choice)},
                {"chunks", choice.chunks},           {"chunk_elements", choice.chunk_elements},
                {"predicted_s", choice.seconds},     {"counts", choice.counts},
                {"simulations", choice.simulations}, {"proven", choice.proven}};
  };
  Json json = {{"operation", "broadcast"},
               {"root", found.plan.root},
               {"nodes", found.plan.nodes},
               {"tensors", broadcast.model.gradients.size()},
               {"elements", models::total_elements(broadcast.model)}};
  json.update(to_json(found.best));
  json["proven"] = found.proven;
  json["predicted_s_p10"] = range ? Json(range->p10_s) : Json();
  json["predicted_s_p90"] = range ? Json(range->p90_s) : Json();
  json["choices"] = Json::array();
  for (const BroadcastChoice& choice : found.choices) json["choices"].push_back(to_json(choice));
  json["output"] = broadcast.output;
  fmt::print(std::cout, "{}\n", io::as_command_line(json.dump()));
}

/// What is known of other chunk counts.
std::string note(const BroadcastChoice& choice) {
  return choice.proven
             ? fmt::format("the best of all {} chunk counts", choice.counts)
             : fmt::format("the best of {} of {} chunk counts", choice.simulations, choice.counts);
}

void print_report(const Broadcast& broadcast, const BroadcastResult& found,
                  const std::optional<sim::Interval>& range) {
  const BroadcastChoice& best = found.best;
  const std::string codec =
      best.algorithm.empty() ? "uncompressed" : "compressed with " + best.algorithm;
  fmt::print(std::cout, "{}, {}, in {} chunk{} of {} elements: {}{}\n", best.strategy, codec,
             best.chunks, best.chunks == 1 ? "" : "s", best.chunk_elements,
             io::format_duration(best.seconds),
             range ? fmt::format(" ({} … {})", io::format_duration(range->p10_s),
                                 io::format_duration(range->p90_s))
                   : "");
  fmt::print(std::cout, "from node {} to {} others; {}\n", found.plan.root, found.plan.nodes - 1,
             io::as_command_line(costs::describe_machines(
                 broadcast.loaded.profile, broadcast.loaded.cluster, broadcast.model)));
  fmt::print(std::cout, "  {:<18} {:<16} {:>7} {:>10}\n", "topology", "codec", "chunks", "time");
  for (const BroadcastChoice& choice : found.choices) {
    fmt::print(std::cout, "  {:<18} {:<16} {:>7} {:>10}  {}\n", choice.strategy, codec_name(choice),
               choice.chunks, io::format_duration(choice.seconds), note(choice));
  }
  fmt::print(std::cout, "{}: written\n", broadcast.output);
}

}  // namespace

void refuse_broadcast_options(const BroadcastOptions& options) {
  const auto refuse = [](const char* option, bool given) {
    if (!given) return;
    throw io::InputError(
        fmt::format("{} is for --job broadcast: add that, or leave {} out", option, option));
  };
  refuse("--bytes", !options.bytes.empty());
  refuse("--dtype", options.dtype.has_value());
  refuse("--root", options.root.has_value());
  refuse("--chunks", options.chunks.has_value());
  refuse("--lossless", options.lossless);
}

void run_broadcast(const Options& options) {
  if (options.request.analysis.any()) {
    throw io::InputError(
        "--plan, --explain, --compare and --robust are for --job mean: leave them out; hipress-sim "
        "--plan says more of a broadcast's plan");
  }
  const io::InterruptScope scope;
  const Broadcast broadcast(options);
  const BroadcastResult found = plan(broadcast);
  const std::optional<sim::Interval> range = interval_of(broadcast, found);
  plans::write_plan_yaml(
      broadcast.output, broadcast.model, found.plan,
      {.predicted_iteration_s = found.best.seconds,
       .search = "broadcast",
       .profile = broadcast.loaded.profile.name + " " + broadcast.loaded.profile.fingerprint,
       .network = options.request.network});
  for (const std::string& diagnostic : broadcast.loaded.diagnostics) {
    tools::inform(diagnostic);
  }
  if (options.json) {
    print_json(broadcast, found, range);
  } else {
    print_report(broadcast, found, range);
  }
}

}  // namespace hipress::planner
