#include "planner/advice/in_words.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>

#include "costs/levels.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "models/bound_by.hpp"
#include "planner/advice/settings.hpp"
#include "planner/timing/evaluation.hpp"
#include "sim/compute_utilisation.hpp"
#include "sim/folding.hpp"
#include "sim/graph_size.hpp"
#include "sim/scenario.hpp"
#include "sim/sensitivity.hpp"

namespace hipress::planner {
namespace {

constexpr std::string_view kRareSchedule = "local(steps=10)";

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// Describes gains: "of 963ms, computation twice as fast would save 4 %, the network 45 %, …".
std::string describe(const std::vector<models::Gain>& gains, double iteration_s) {
  std::string text = fmt::format("of {}", io::format_duration(iteration_s));
  for (const models::Gain& gain : gains) {
    const bool is_first = &gain == &gains.front();
    text += fmt::format(", {}{} {}", gain.what, is_first ? " twice as fast would save" : "",
                        percent(gain.share));
  }
  return text;
}

/// Describes how much faster the contender's plan, unchanged, would be if one kind of work at a
/// time took half as long. Unset if its graph is too large.
std::optional<std::string> bounds_of(const Problem& problem, const Contender& contender,
                                     const char* how) {
  constexpr double kMostTasks = 2e5;  // a tenth of a second for each simulation
  if (contender.machines == nullptr) return std::nullopt;
  AffordableScenario affordable = affordable_scenario(
      problem.model, contender.plan.plan, *contender.machines, contender.plan.transfer_order);
  const double tasks = simulated_tasks(problem.model, contender.plan.plan, *contender.machines);
  if (!affordable.possible || tasks > kMostTasks) return std::nullopt;
  sim::Scenario& scenario = affordable.scenario;
  scenario.stop = {};  // the search's deadline does not apply to this simulation
  const casync::TaskGraph graph = sim::expand(scenario, affordable.fold).graph;
  const casync::Picoseconds iteration = sim::iteration_time(scenario, graph);
  const std::vector<models::Gain> gains = sim::gains(scenario, graph, iteration);
  return fmt::format("{} compression, this job is bound by {}: {}", how, models::bound_by(gains),
                     describe(gains, casync::to_seconds(iteration)));
}

void add_bounds(const Advice& advice, std::vector<std::string>& sentences) {
  const auto add = [&](const std::optional<Contender>& contender, const char* how) {
    if (!contender) return;
    if (auto sentence = bounds_of(*advice.problem, *contender, how)) {
      sentences.push_back(std::move(*sentence));
    }
  };
  add(advice.comparison.uncompressed, "without");
  add(advice.comparison.compressed, "with");
}

std::string changed(double now_s, double then_s) {
  constexpr double kNothing = 0.005;  // smaller shares are 0 % in words
  const double change = then_s / now_s - 1;
  if (std::abs(change) < kNothing) return io::format_duration(then_s) + " (unchanged)";
  return fmt::format("{} ({:+.0f} %)", io::format_duration(then_s), 100 * change);
}

/// Adds a sentence such as "twice the bandwidth, 20 Gbit/s: 99ms (-36 %) with compression, 140ms
/// (-2 %) without: compress".
void add_change(const std::string& what, const Elsewhere& at, const Comparison& now,
                std::vector<std::string>& sentences) {
  if (!at.compressed_s || !at.uncompressed_s || !now.compressed || !now.uncompressed) return;
  sentences.push_back(fmt::format("{}: {} with compression, {} without: {}", what,
                                  changed(now.compressed->plan.iteration_s, *at.compressed_s),
                                  changed(now.uncompressed->plan.iteration_s, *at.uncompressed_s),
                                  to_string(at.answer)));
}

/// Adds sentences for changed quantities; leaves out values that the request cannot have.
void add_changes(WhatIf& what_if, const Advice& advice, std::vector<std::string>& sentences) {
  struct Change {
    std::string_view quantity;
    double factor;
    std::string_view words;
  };
  constexpr std::array kChanges = {
      Change{"bandwidth", 2, "twice the bandwidth"}, Change{"latency", 0.5, "half the latency"},
      Change{"nodes", 0.5, "half the nodes"}, Change{"nodes", 2, "twice the nodes"},
      Change{"compute-time", 0.5, "computation twice as fast"}};
  for (const auto& [name, factor, words] : kChanges) {
    const QuantityRow& quantity = find_quantity(name);
    double value = quantity.of(what_if.prepared()) * factor;
    if (quantity.whole) value = static_cast<double>(static_cast<std::int64_t>(value));
    if (value < quantity.may_be.least || value > quantity.may_be.most) continue;
    try {
      add_change(fmt::format("{}, {}", words, quantity.text(value)), what_if.at(quantity, value),
                 advice.comparison, sentences);
    } catch (const io::InputError&) {
      // Left out: a cluster file may fix the number of nodes, or the model may have no times.
    }
  }
  add_change("codecs twice as fast", what_if.with_faster_codecs(2), advice.comparison, sentences);
}

/// The contender's plan under another schedule, on its machines and at its level of GPUs.
sim::Scenario scheduled(const PreparedRequest& prepared, const Problem& problem,
                        const Contender& contender) {
  sim::Scenario scenario = {
      .model = problem.model,
      .plan = contender.plan.plan,
      .profile = prepared.profile,
      .cluster = costs::with_nodes(contender.machines->cluster, contender.plan.plan.nodes),
      .network = contender.machines->network,
      .iterations = sim::kPeriods};
  scenario.plan.gpus_per_node = scenario.cluster.gpus_per_node;
  scenario.plan.schedule = casync::Schedule::parse(kRareSchedule);
  scenario.plan.schedule.timetable(scenario.model);
  return scenario;
}

/// Adds the time of a step if gradients are averaged every ten steps. Leaves out too large graphs.
void add_schedule(const PreparedRequest& prepared, const Advice& advice,
                  std::vector<std::string>& sentences) {
  const auto& raw = advice.comparison.uncompressed;
  if (!raw || raw->machines == nullptr) return;
  if (kind_of(advice.problem->schedule) != JobKind::kAveraging) return;
  constexpr double kMostTasks = 5e5;  // half a second
  try {
    const sim::Scenario scenario = scheduled(prepared, *advice.problem, *raw);
    const casync::Folding folding = sim::choose_folding(scenario, sim::Fold::kExactly).folding;
    if (sim::graph_size(scenario, folding).tasks > kMostTasks) return;
    const double step_s =
        casync::to_seconds(sim::iteration_time(scenario, sim::expand(scenario, folding)));
    sentences.push_back(fmt::format("schedule {}, uncompressed: {} a step; {}", kRareSchedule,
                                    changed(raw->plan.iteration_s, step_s),
                                    scenario.plan.schedule.gives_up()));
  } catch (const std::invalid_argument&) {
    // The topology cannot carry such a schedule.
  }
}

/// Adds a sentence on DDP's buckets or FSDP's wrapping, which a job can change at no cost.
void add_setting(const Problem& problem, std::vector<std::string>& sentences) {
  const JobKind kind = kind_of(problem.schedule);
  if (problem.machines == nullptr || problem.nodes < 2 || kind == JobKind::kLocalUpdates) return;
  const auto add = [&](const Problem& gpus) {
    const bool shards = kind == JobKind::kSharding;
    std::string sentence = describe(shards ? fsdp_wrapping(gpus) : bucket_cap(gpus));
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  };
  std::optional<costs::Cluster> flat = as_collectives_see(*problem.machines);
  if (!flat) return add(problem);
  add(OtherLevels(problem, *problem.machines, *std::move(flat)).problem());
}

}  // namespace

std::vector<std::string> in_words(WhatIf& what_if, const Advice& advice) {
  std::vector<std::string> sentences;
  if (!advice.comparison.planned_s) return sentences;
  add_bounds(advice, sentences);
  add_setting(*advice.problem, sentences);
  add_changes(what_if, advice, sentences);
  add_schedule(what_if.prepared(), advice, sentences);
  const BreakEvenPoint point = break_even_point(what_if, find_quantity("bandwidth"));
  for (std::string& sentence : describe(point, what_if.prepared().problem.tolerance)) {
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace hipress::planner
