#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "costs/description.hpp"
#include "costs/levels.hpp"
#include "io/memory.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "models/wrap.hpp"
#include "planner/advice/advice.hpp"
#include "planner/choices/choices.hpp"
#include "planner/rules/secopa_costs.hpp"
#include "plans/plan_file.hpp"

namespace hipress::planner {
namespace {

// Least time for the simulations beside the search; the second value applies if other processes
// keep the cores busy. If the search's budget is longer, they get as much as the search.
constexpr double kLeastBeside_s = 2, kLeastBesideBusy_s = 5;
constexpr double kNoEnd_s = 1e9;
constexpr double kShareOfLevels = 0.5;  // for each level, if GPUs can be at two levels

/// The cluster at the level of GPUs for which a given plan was made.
costs::Cluster for_plan(const costs::Cluster& cluster, const std::string& plan) {
  return costs::with_nodes(cluster, plans::nodes_of_plan(plan).value_or(cluster.nodes));
}

/// Reads the model, with the options' times.
models::Model read_model(const Request& request, std::vector<std::string>& diagnostics) {
  models::Model model = request.model ? *request.model : models::read_model(request.input);
  if (!request.wrap.empty()) {
    models::wrap(request.wrap, model);
  } else if (!request.analysis.plan.empty()) {
    plans::wrap_as_planned(request.analysis.plan, model);
  }
  models::TimeOptions times = request.times;
  times.rates = costs::rates_of(request.machines, request.nodes,
                                kind_of(request.schedule) == JobKind::kSharding);
  diagnostics = models::apply(times, model);
  return model;
}

std::shared_ptr<const Learning> learning_of(const Request& request) {
  if (request.pilot.empty()) return nullptr;
  return std::make_shared<const Learning>(read_pilot(request.pilot));
}

/// Rejects invalid options, completes the algorithms, and sets the order for a given plan.
Request checked(Request request, const Learning* learning) {
  check(request);
  request.algorithms =
      algorithms_of(request, search_for(request.schedule, request.search_name()), learning);
  if (request.transfer_order_given && request.transfer_order != "best") {
    request.analysis.order = sim::parse_transfer_order(request.transfer_order);
  }
  return request;
}

}  // namespace

PreparedRequest::PreparedRequest(const Request& given, PlanForm its_form, const Hooks& its_hooks)
    : learning(learning_of(given)),
      request(checked(given, learning.get())),
      form(its_form),
      search(search_for(given.schedule, given.search_name())),
      model(read_model(given, diagnostics)),
      problem(problem_of(request, its_form, search, model, learning, its_hooks.warn)),
      hooks(its_hooks) {
  // Searches that do not optimise end soon, and have no best plan to return early.
  if (optimises()) problem.limits.interrupted = hooks.interrupted;
  if (problem.activation_bytes == 0) problem.activation_bytes = model.activation_bytes;
  problem.limits.progress = hooks.progress;
  warn_of_assumptions();
  read_machines();
  if (given.algorithms.empty() && !learning) keep_profiled();
  add_foreign_costs();
  check(request.analysis, problem);
  if (optimises() && problem.topology == "best") other = OtherLevels::of(problem, diagnostics);
}

double PreparedRequest::share_of_level() const { return other ? kShareOfLevels : 1; }

double PreparedRequest::share_of_search() const {
  return optimises() && may_compress(problem) ? 1 - kShareUncompressed : 1;
}

void PreparedRequest::read_machines() {
  costs::LoadedMachines loaded = costs::load(request.machines, request.nodes, problem.nodes);
  diagnostics.insert(diagnostics.end(), loaded.diagnostics.begin(), loaded.diagnostics.end());
  for (const std::string& warning : loaded.warnings) hooks.warn(warning);
  profile = std::move(loaded.profile);
  costs::Cluster cluster = std::move(loaded.cluster);
  given_nodes = cluster.nodes;
  if (kind_of(request.schedule) == JobKind::kSharding) cluster = costs::of_gpus(cluster);
  // The first search has hosts as nodes: its graphs are small, and its plans use all cards. The
  // search with GPUs as nodes gets the remaining time.
  const bool open = optimises() && problem.topology == "best" && form == PlanForm::kYaml;
  if (open && kind_of(request.schedule) == JobKind::kAveraging && costs::rails(cluster) > 1) {
    cluster = costs::in_two_levels(cluster).value_or(cluster);
  }
  if (!searches()) cluster = for_plan(cluster, request.analysis.plan);
  problem.nodes = cluster.nodes;
  secopa_profile = profile_on_link(profile, cluster.link);
  if (request.machines.names_profile()) problem.profile = &secopa_profile;
  machines.emplace(Machines{profile, cluster, sim::parse_network(request.network)});
  machines->memory_bytes = static_cast<double>(io::available_memory()) / std::max(1u, request.jobs);
  const bool ends = !request.evaluations;  // counted evaluations are not timed
  const double search_s = problem.limits.budget_s;
  machines->budget = std::make_shared<SimulationBudget>(
      ends ? search_s + std::max(search_s, kLeastBeside_s) : kNoEnd_s, problem.limits.interrupted,
      ends ? search_s + std::max(search_s, kLeastBesideBusy_s) : kNoEnd_s);
  problem.machines = &*machines;
}

/// Drops default algorithms that have no costs in the profile.
void PreparedRequest::keep_profiled() {
  if (problem.profile == nullptr && !search.simulates) return;
  const auto left = std::erase_if(problem.algorithms, [&](const std::string& name) {
    return !profile.codecs.contains(std::string(kernels::name_of_algorithm(name)));
  });
  if (left == 0 || !problem.algorithms.empty()) return;
  diagnostics.push_back(fmt::format(
      "profile {} has no costs of {}, which are known not to slow learning: measure them with "
      "hipress-profile `algorithm` {}, or name what the plan may use in `algorithm`",
      profile.name, request.algorithms, request.algorithms));
}

/// Adds diagnostics for algorithms that are charged the costs of a different algorithm.
void PreparedRequest::add_foreign_costs() {
  for (const std::string& name : problem.algorithms) {
    const bool published = problem.profile == nullptr && !search.simulates;
    std::string diagnostic =
        published ? diagnose_published_costs(name) : costs::foreign_costs(profile, name);
    if (!diagnostic.empty()) diagnostics.push_back(std::move(diagnostic));
  }
}

void PreparedRequest::warn_of_assumptions() const {
  for (const std::string& name : problem.algorithms) {
    const std::string note = kernels::optimizer_note(name);
    if (!note.empty()) hooks.warn(note);
    if (!problem.accuracy.is_assumed(name)) continue;
    hooks.warn(
        fmt::format("the coarseness of {} is unknown: it is taken to be that of dgc; `accuracy` "
                    "{}=terngrad, say, sets it",
                    name, name));
  }
  for (const auto& [name, place] : problem.accuracy.places) {
    const auto is_it = [&name = name](const std::string& algorithm) {
      return algorithm == name || algorithm.starts_with(name + "(");
    };
    const std::vector<std::string> named = named_algorithms(request.algorithms);
    if (std::none_of(named.begin(), named.end(), is_it)) {
      hooks.warn(fmt::format("`accuracy` {}=… has no effect: `algorithm` does not name it", name));
    }
  }
}

}  // namespace hipress::planner
