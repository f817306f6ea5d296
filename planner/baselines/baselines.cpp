#include "planner/baselines/baselines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "planner/baselines/ddp.hpp"
#include "planner/choices/choices.hpp"
#include "planner/problem/levels.hpp"
#include "planner/rules/secopa.hpp"
#include "planner/search/greedy.hpp"
#include "planner/timing/evaluator.hpp"
#include "planner/timing/pattern_simulator.hpp"
#include "plans/plan_builder.hpp"
#include "plans/plan_file.hpp"
#include "sim/parallel.hpp"

namespace hipress::planner {
namespace {

casync::Plan greedy(const Problem& problem) { return search_greedy(problem).plan; }

constexpr std::array kOthers = {
    BaselineRow{.name = "greedy",
                .help = "one gradient after the other, by the simulated timeline",
                .make = greedy,
                .searches = true},
    BaselineRow{.name = "ddp",
                .help = "PyTorch DDP: buckets of 25 MiB, all-reduced in their gradients' type",
                .make = ddp,
                .compresses = false,
                .topology = "allreduce",
                .title = "PyTorch DDP",
                .is_default = true},
    BaselineRow{.name = "ddp_fp16",
                .help = "PyTorch DDP with its fp16 hook",
                .make = ddp_fp16,
                .topology = "allreduce",
                .algorithm = "fp16",
                .title = "PyTorch DDP with its fp16 hook"},
    BaselineRow{.name = "ddp_powersgd",
                .help = "PyTorch DDP with its PowerSGD hook, of the rank in `algorithm`, else 4: "
                        "each bucket as "
                        "two groups",
                .make = ddp_powersgd,
                .topology = "allreduce",
                .algorithm = kDdpPowerSgd,
                .title = "PyTorch DDP with its PowerSGD hook"},
    BaselineRow{"none_grouped",
                "nothing compressed, in the best bulk groups",
                rules::none,
                false,
                {},
                true},
    BaselineRow{"fp16_grouped",
                "everything cast to half precision, in the best bulk groups",
                rules::fp16,
                true,
                {},
                true,
                "fp16"},
    BaselineRow{"all_grouped",
                "everything compressed, in the best bulk groups",
                rules::all,
                true,
                {},
                true},
    BaselineRow{.name = "secopa_grouped",
                .help = "by SeCoPa's cost model, in the best bulk groups",
                .make = rules::secopa,
                .grouped = true,
                .by_formulas = true},
};

}  // namespace

std::span<const BaselineRow> all_baselines() {
  static const std::vector<BaselineRow> rows = [] {
    std::vector<BaselineRow> all(baselines().begin(), baselines().end());
    all.insert(all.end(), kOthers.begin(), kOthers.end());
    all.insert(all.end(), sharded_baselines().begin(), sharded_baselines().end());
    return all;
  }();
  return rows;
}

const BaselineRow* find_baseline(std::string_view name) {
  for (const BaselineRow& row : all_baselines()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

namespace {

bool has_costs(const BaselineRow& baseline, const costs::Profile& profile) {
  return baseline.algorithm.empty() || !profile.row_of(std::string(baseline.algorithm)).empty();
}

}  // namespace

std::vector<std::string> topologies_of(const Problem& problem, const BaselineRow& baseline) {
  if (problem.machines != nullptr && !has_costs(baseline, problem.machines->profile)) return {};
  if (!baseline.topology.empty()) return {std::string(baseline.topology)};
  std::vector<std::string> names = topologies_of(problem);
  if (baseline.compresses) {
    std::erase_if(names, sends_raw_alone);
  } else if (problem.topology == "best" && !has_half_precision(problem.model)) {
    for (const casync::Topology* topology : casync::topologies_for(casync::Operation::kMean)) {
      const std::string name(topology->name);
      if (sends_raw_alone(name)) names.push_back(name);
    }
  }
  if (baseline.by_formulas) {
    std::erase_if(names, [](const std::string& name) { return !secopa_knows(name); });
  }
  return names;
}

namespace {

/// Bulk rules for the plan, including off. Of rules that form the same groups, only the first is
/// kept. The best rule comes first, by coarse simulations on network port.
std::vector<casync::Aggregation> ranked_rules(const Problem& problem, const casync::Plan& plan) {
  Choices only = {.algorithms = plan.algorithms, .gradients = {}, .schemes = {}};
  for (const casync::Decision& decision : plan.decisions) only.gradients.push_back({decision});
  for (const casync::Aggregation& rule : bulk_rules(problem)) {
    only.schemes.push_back({.topology = plan.topology, .bulk = rule});
  }
  Evaluator evaluator(problem, only);
  PatternSimulator timeline;
  std::vector<std::pair<std::int64_t, std::uint32_t>> ranked;
  std::vector<PatternGraph> known;
  for (std::uint32_t scheme = 0; scheme < only.schemes.size(); ++scheme) {
    const Candidate candidate = {scheme, std::vector<std::uint16_t>(plan.decisions.size(), 0)};
    PatternGraph schedule = evaluator.coarse(candidate);
    if (std::ranges::find(known, schedule.units, &PatternGraph::units) != known.end()) continue;
    ranked.emplace_back(timeline.run(schedule), scheme);
    known.push_back(std::move(schedule));
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<casync::Aggregation> rules;
  for (const auto& [time, scheme] : ranked) rules.push_back(only.schemes[scheme].bulk);
  return rules;
}

/// Simulated time; unset, with the reason, if the profile lacks an algorithm.
AffordableTime time_of(const Problem& problem, const casync::Plan& plan, sim::TransferOrder order,
                       const Machines& machines) {
  try {
    return affordable_iteration(problem.model, plan, machines, order);
  } catch (const io::InputError& error) {
    return {std::nullopt, error.what()};
  }
}

/// Plans of a baseline with one topology. All are simulated, and the fastest counts.
std::vector<casync::Plan> plans_of(const BaselineRow& row, const Problem& problem) {
  std::vector<casync::Plan> plans = {row.make(problem)};
  if (plans.front().decisions.empty()) return {};
  if (!row.grouped || problem.nodes == 1) return plans;
  constexpr std::size_t kSimulated = 2;  // more than one, since coarse simulations may err
  Problem grouping = problem;
  grouping.grouping = Grouping::kAny;
  const std::vector<casync::Aggregation> rules = ranked_rules(grouping, plans.front());
  plans.assign(std::min(kSimulated, rules.size()), plans.front());
  for (std::size_t i = 0; i < plans.size(); ++i) plans[i].bulk = rules[i];
  return plans;
}

}  // namespace

namespace {

/// True for low-rank baselines if the profile lacks their costs, or a node's GPUs cannot be nodes.
bool is_left_out(const BaselineRow& row, const Machines& machines) {
  if (row.algorithm.empty() || !is_additive(std::string(row.algorithm))) return false;
  const bool whole_nodes = machines.cluster.gpus_per_node > 1 && !as_collectives_see(machines);
  return whole_nodes || !has_costs(row, machines.profile);
}

}  // namespace

namespace {

/// Order of simulation. Baselines with few messages come first: those without compression, which
/// decide the saving, then those with it. In both, those with groups come before DDP's, which run
/// among all GPUs.
constexpr int kAloneTurn = 4;
int turn_of(const BaselineRow& row) {
  if (row.searches) return 5;
  if (row.grouped) return row.compresses ? 2 : 0;
  if (row.is_collective()) return row.compresses ? 3 : 1;
  return kAloneTurn;
}

/// Approximate tasks in all simulations of a baseline that sends gradients alone; 0 for others.
double tasks_alone(const BaselineRow& row, const Problem& problem, const Machines& machines) {
  if (turn_of(row) != kAloneTurn) return 0;
  double tasks = 0;
  Problem one = problem;
  one.machines = &machines;
  for (const std::string& topology : topologies_of(one, row)) {
    one.topology = topology;
    tasks += simulated_tasks(problem.model, row.make(one), machines);
  }
  return tasks;
}

}  // namespace

bool sends_alone(const BaselineRow& row) { return turn_of(row) >= kAloneTurn; }

Baseline simulate_baseline(const BaselineRow& row, const Problem& problem,
                           const Machines& machines) {
  if (row.is_collective()) {
    if (std::optional<costs::Cluster> flat = as_collectives_see(machines)) {
      const OtherLevels level(problem, machines, *std::move(flat));
      return simulate_baseline(row, level.problem(), *level.problem().machines);
    }
  }
  Baseline best{.name = row.name, .plan = {}, .iteration_s = {}, .diagnostic = {}};
  if (problem.transfer_order == OrderChoice::kNeed) best.transfer_order = sim::TransferOrder::kNeed;
  Problem one = problem;
  one.machines = &machines;
  const std::vector<std::string> topologies = topologies_of(one, row);
  if (topologies.empty()) {
    best.diagnostic = !has_costs(row, machines.profile)
                          ? fmt::format("the profile has no costs of {}", row.algorithm)
                      : row.by_formulas && !sends_raw_alone(problem.topology)
                          ? fmt::format("SeCoPa has no formulas for {}", problem.topology)
                      : row.topology.empty() ? problem.topology + " sends gradients as fp32"
                                             : "all-reduces gradients as fp32";
  }
  for (const std::string& topology : topologies) {
    one.topology = topology;
    for (casync::Plan& plan : plans_of(row, one)) {
      AffordableTime time = time_of(problem, plan, best.transfer_order, machines);
      if (best.plan.decisions.empty() ||
          (time.iteration_s && (!best.iteration_s || *time.iteration_s < *best.iteration_s))) {
        best.plan = std::move(plan);
        best.iteration_s = time.iteration_s;
        best.diagnostic = std::move(time.diagnostic);
      }
    }
  }
  if (!best.plan.decisions.empty()) best.memory = memory_of(problem, best.plan);
  return best;
}

std::vector<std::size_t> simulation_order(std::span<const BaselineRow* const> rows,
                                          std::span<const double> tasks) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return std::pair(turn_of(*rows[i]), tasks[i]); });
  return order;
}

std::vector<Baseline> simulate_baselines(const Problem& problem, const Machines& machines,
                                         Extent extent) {
  std::vector<const BaselineRow*> rows;
  std::vector<double> tasks;
  for (const BaselineRow& row : all_baselines()) {
    if (!row.is_for(kind_of(problem.schedule)) || is_left_out(row, machines)) continue;
    const bool costly = sends_alone(row) && row.name != problem.today;
    if (costly && extent == Extent::kCheap) continue;
    rows.push_back(&row);
    tasks.push_back(tasks_alone(row, problem, machines));
  }
  std::vector<std::size_t> order = simulation_order(rows, tasks);
  if (problem.limits.jobs > 1 && !folded_only(problem)) {
    // Start the longest simulations first: each takes one thread, while the other threads do the
    // rest. Not if whole graphs are too large, since the longest might not end in time.
    std::stable_partition(order.begin(), order.end(),
                          [&](std::size_t i) { return rows[i]->searches; });
  }
  std::vector<Baseline> result(rows.size());
  sim::run_parallel(rows.size(), problem.limits.jobs, [&](std::size_t i, unsigned) {
    result[order[i]] = simulate_baseline(*rows[order[i]], problem, machines);
  });
  std::erase_if(result, [](const Baseline& one) {
    return one.plan.decisions.empty() && one.diagnostic.empty();
  });
  return result;
}

bool may_be_plan(const Problem& problem, const casync::Plan& plan) {
  if (plan.schedule != problem.schedule || !fits(problem, plan)) return false;
  if (kind_of(plan.schedule) == JobKind::kSharding) {
    return allows(problem, plan) && plan.nodes == problem.nodes &&
           plan.shards_by == problem.shards_by;
  }
  const bool grouped =
      plan.bulk.threshold_bytes > 0 || plan.batch.threshold_bytes > 0 || !plan.bulk_groups.empty();
  const bool goes_so = problem.topology == "best" ||
                       (plan.topology == problem.topology && plan.raw_topology.empty());
  return allows(problem, plan) && goes_so && plan.nodes == problem.nodes &&
         (!grouped || problem.grouping == Grouping::kAny);
}

const Baseline* faster_baseline(const Problem& problem, const std::vector<Baseline>& baselines,
                                double planned_s, Allowance allowance) {
  const Baseline* fastest = nullptr;
  for (const Baseline& baseline : baselines) {
    if (!baseline.iteration_s || *baseline.iteration_s >= planned_s) continue;
    if (may_be_plan(problem, baseline.plan) != (allowance == Allowance::kAllowed)) continue;
    planned_s = *baseline.iteration_s;
    fastest = &baseline;
  }
  return fastest;
}

}  // namespace hipress::planner
