#include "requests/bandwidths.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "io/error.hpp"
#include "planner/baselines/baselines.hpp"
#include "planner/problem/levels.hpp"
#include "planner/rules/alone.hpp"
#include "planner/schedules/scheduled.hpp"
#include "planner/search/shards.hpp"
#include "requests/asked_schedules.hpp"
#include "requests/candidates.hpp"
#include "requests/result_forms.hpp"
#include "requests/shared_records.hpp"
#include "sim/compute_utilisation.hpp"
#include "sim/parallel.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

constexpr std::string_view kUtilizations = "50%,80%,90%,95%,99%";
constexpr std::string_view kNothing = "none";

double utilization_in(std::string_view text) {
  std::string_view digits = text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (whole && text.ends_with('%') && percent > 0 && percent < 100) return percent / 100;
  throw io::InputError(
      fmt::format("`utilization` must be percentages above 0% and below 100%, which no bandwidth "
                  "reaches, such "
                  "as {}; got {}",
                  kUtilizations, io::quote(std::string(text))));
}

std::vector<double> utilizations_of(const PlanRequest& request) {
  std::string_view list = request.utilization.empty() ? kUtilizations : request.utilization;
  std::vector<double> found;
  while (true) {
    const std::size_t comma = list.find(',');
    std::string_view one = list.substr(0, comma);
    while (one.starts_with(' ')) one.remove_prefix(1);
    found.push_back(utilization_in(one));
    if (comma == std::string_view::npos) return found;
    list.remove_prefix(comma + 1);
  }
}

/// Schedule and algorithm of a table.
struct Asked {
  casync::Schedule schedule;
  std::string algorithm;    ///< or kNothing
  bool by_library = false;  ///< a library's all-reduce averages raw gradients
};

/// Compresses all gradients with one algorithm, or none. Each has one partition per node.
casync::Plan plan_of(const Problem& problem, const std::string& topology, const Asked& asked) {
  Problem alone = problem;
  alone.topology = topology;
  alone.algorithms.clear();
  const bool raw = asked.algorithm == kNothing;
  if (!raw) alone.algorithms = {asked.algorithm};
  casync::Plan plan = raw ? rules::none(alone) : rules::all(alone);
  for (casync::Decision& decision : plan.decisions) {
    decision.partitions = static_cast<std::int32_t>(problem.nodes);
  }
  plan.schedule = asked.schedule;
  plan.shards_by = problem.shards_by;
  plan.gpus_per_node = problem.machines->cluster.gpus_per_node;
  if (raw) send_as_stored(problem.model, plan);
  const bool in_shards = kind_of(asked.schedule) == JobKind::kSharding;
  if (in_shards && !raw && may_gather(problem, asked.algorithm)) {
    for (const casync::Decision& decision : plan.decisions) {
      plan.gathers.push_back(decision.algorithm);
    }
  }
  return plan;
}

/// Scenario of several iterations back to back, also for schedules that average in every step.
sim::Scenario in_a_row(const Problem& problem, const casync::Plan& plan) {
  sim::Scenario scenario = affordable_scenario(problem.model, plan, *problem.machines).scenario;
  if (kind_of(plan.schedule) == JobKind::kAveraging) scenario.iterations = sim::kPeriods;
  scenario.stop = [flag = problem.limits.interrupted] { return flag.is_set(); };
  return scenario;
}

/// Keeps the lower bandwidth of both tables, row by row.
void take_less(BandwidthTable table, BandwidthTable& best) {
  if (best.rows.empty()) {
    best = std::move(table);
    return;
  }
  for (std::size_t i = 0; i < best.rows.size(); ++i) {
    const std::optional<double>& found = table.rows[i].bits_per_s;
    if (found && (!best.rows[i].bits_per_s || *found < *best.rows[i].bits_per_s)) {
      best.rows[i] = table.rows[i];
    }
  }
}

/// Table of PyTorch's DDP. Its nodes are GPUs.
BandwidthTable table_of_ddp(const Problem& problem, const std::vector<double>& wanted) {
  const BaselineRow& row = *find_baseline("ddp");
  const auto table = [&](const Problem& gpus) {
    return BandwidthTable{{},
                          std::string(kNothing),
                          std::string(row.topology),
                          required_bandwidths(in_a_row(gpus, row.make(gpus)), wanted)};
  };
  std::optional<costs::Cluster> flat = as_collectives_see(*problem.machines);
  if (!flat) return table(problem);
  return table(OtherLevels(problem, *problem.machines, *std::move(flat)).problem());
}

BandwidthTable table_of(const Problem& problem, const Asked& asked,
                        const std::vector<double>& wanted) {
  if (asked.by_library) return table_of_ddp(problem, wanted);
  const bool in_shards = kind_of(asked.schedule) == JobKind::kSharding;
  if (in_shards && problem.machines->cluster.gpus_per_node > 1) {
    return table_of(GpuProblem(problem).problem(), asked, wanted);
  }
  BandwidthTable best;
  std::string refusal = "no topology carries it";
  // The topology does not matter: shards travel by `shards_by`.
  const std::vector<std::string> topologies =
      in_shards ? std::vector<std::string>{"ring"} : topologies_of(problem);
  for (const std::string& topology : topologies) {
    try {
      const sim::Scenario scenario = in_a_row(problem, plan_of(problem, topology, asked));
      take_less({{}, asked.algorithm, topology, required_bandwidths(scenario, wanted)}, best);
    } catch (const std::invalid_argument& error) {
      refusal = error.what();
    }
  }
  if (best.rows.empty()) throw io::InputError(refusal);
  if (topologies.size() > 1) best.topology = problem.topology;
  if (in_shards) {
    best.topology = problem.shards_by == casync::kLibrary ? "allreduce" : problem.shards_by;
  }
  return best;
}

/// Table without bandwidths, for a schedule that does not fit into GPU memory.
BandwidthTable table_of_none(const Asked& asked, const std::string& why,
                             const std::vector<double>& wanted) {
  BandwidthTable table{{}, asked.algorithm, "", {}};
  for (const double share : wanted) {
    table.rows.push_back({.utilization = share,
                          .bits_per_s = {},
                          .bits_per_s_p10 = {},
                          .bits_per_s_p90 = {},
                          .reason = why});
  }
  return table;
}

}  // namespace

Bandwidths find_bandwidths(const PlanRequest& request, const Hooks& hooks) {
  refuse_unfit(request);
  check(request);
  const std::vector<double> wanted = utilizations_of(request);  // refused before files are read
  if (request.wraps.size() > 1) {
    throw io::InputError("`required_bandwidth` takes one rule of `wrap`: leave the others out");
  }
  PlanRequest wrapped = request;
  if (!request.wraps.empty()) wrapped.request.wrap = request.wraps.front();
  Bandwidths found{.prepared = prepare(wrapped, hooks), .tables = {}};
  Problem problem = found.prepared->problem;
  if (problem.nodes < 2) {
    throw io::InputError(
        "`required_bandwidth` needs at least two nodes: a job of one node sends nothing");
  }
  const AskedSchedules asked = asked_schedules(request, problem);
  for (const AskedSchedule& one : asked.schedules) wrapped.kinds.push_back(kind_of(one.schedule));
  refuse_unfit(wrapped);
  warn_of_idle(fields(wrapped), hooks);
  for (const std::string& diagnostic : found.prepared->diagnostics) inform(hooks, diagnostic);
  std::vector<std::string> algorithms = {std::string(kNothing)};
  if (request.is_given("algorithm") && !problem.algorithms.empty()) algorithms = problem.algorithms;
  look_for_interrupt(hooks);
  problem.limits.interrupted = hooks.interrupted;
  found.tables.resize(asked.schedules.size() * algorithms.size());
  const auto fill = [&](std::size_t place) {
    const AskedSchedule& schedule = asked.schedules[place / algorithms.size()];
    Asked one = {.schedule = schedule.schedule, .algorithm = algorithms[place % algorithms.size()]};
    one.by_library = kind_of(one.schedule) == JobKind::kAveraging && one.algorithm == kNothing &&
                     !request.is_given("topology");
    const std::int64_t bytes = memory_of_schedule(problem, one.schedule).total();
    BandwidthTable& table = found.tables[place];
    table = bytes > room_of(problem)
                ? table_of_none(one, does_not_fit(bytes, room_of(problem)), wanted)
                : table_of(problem, one, wanted);
    table.schedule = schedule.text;
  };
  try {
    sim::run_parallel(found.tables.size(), problem.limits.jobs,
                      [&](std::size_t place, unsigned) { fill(place); });
  } catch (const sim::Stopped&) {
    throw Interrupted();
  }
  return found;
}

namespace {

struct Row {
  std::string_view schedule, algorithm, topology;
  RequiredBandwidth found;
};

void fill_row(Record& record, const Row& row) {
  const RequiredBandwidth& found = row.found;
  record.add("schedule", row.schedule, "Schedule of the synchronisation");
  record.add("algorithm", row.algorithm, "Algorithm that compresses all gradients");
  record.add("topology", row.topology, "Topology of the messages");
  record.add("utilization", found.utilization, "Computation's share of the time, as requested");
  record.add("bits_per_s", found.bits_per_s, "Required bandwidth; null if no bandwidth suffices");
  record.add("bits_per_s_p10", found.bits_per_s_p10, "The start of its 10–90 % interval");
  record.add("bits_per_s_p90", found.bits_per_s_p90, "The end of its 10–90 % interval");
  record.add("reason", found.reason.empty() ? std::nullopt : std::optional(found.reason),
             "Reason why no bandwidth suffices; null if one does");
}

}  // namespace

void fill(Record& record, const Bandwidths& found) {
  std::vector<Row> rows;
  for (const BandwidthTable& table : found.tables) {
    for (const RequiredBandwidth& row : table.rows) {
      rows.push_back({table.schedule, table.algorithm, table.topology, row});
    }
  }
  record.list("required_bandwidth", rows, "Results in the order requested, grouped by schedule",
              fill_row);
  const Problem* const problem = found.prepared ? &found.prepared->problem : nullptr;
  fill_mix(record, problem != nullptr ? &problem->machines->cluster : nullptr,
           problem != nullptr ? &problem->model : nullptr);
}

constinit const ResultForm kBandwidthForm = {"plan", "Required bandwidths",
                                             "Result of a plan request with `required_bandwidth`",
                                             schema_of<Bandwidths>};

io::Document document(const Bandwidths& found) { return document_of(found); }

}  // namespace hipress::requests
