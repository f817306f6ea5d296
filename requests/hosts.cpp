#include "requests/hosts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "costs/machine.hpp"
#include "io/error.hpp"
#include "io/memory.hpp"
#include "io/quantity.hpp"
#include "models/bound_by.hpp"
#include "planner/problem/state_memory.hpp"
#include "plans/plan_builder.hpp"
#include "requests/result_forms.hpp"
#include "requests/simulate.hpp"
#include "sim/folding.hpp"
#include "sim/graph_size.hpp"
#include "sim/sensitivity.hpp"

namespace hipress::requests {
namespace {

/// Smallest HostsRow::added at which more hosts pay.
constexpr double kPays = 0.5;
constexpr double kWorthSaying = 1.02;  // least speedup of a change that the sentence names
constexpr std::size_t kMostSaid = 3;   // most changes that the sentence names

/// PyTorch's plans for a schedule: in the model's types, and in bf16 with reductions in fp32.
struct ScheduleRow {
  std::string_view schedule;
  const char* as_stored;
  const char* mixed;
};
constexpr ScheduleRow kSchedules[] = {
    {"ddp", "ddp", "ddp"}, {"fsdp", "fsdp2", "fsdp2_mixed"}, {"hsdp", "hsdp", "hsdp_mixed"}};

/// Name of the baseline that the job runs today on `hosts` hosts.
std::string today_of(const PlanRequest& request, std::uint32_t hosts) {
  if (!request.today.empty()) return request.today;
  std::string schedule = request.schedules.empty() ? "ddp" : request.schedules.front();
  // hsdp shards over the GPUs of a host, which on one host are all GPUs, as with fsdp.
  if (schedule == "hsdp" && hosts == 1) schedule = "fsdp";
  const auto* const row = std::ranges::find(kSchedules, schedule, &ScheduleRow::schedule);
  if (row == std::end(kSchedules)) {
    throw io::InputError(fmt::format(
        "`schedule` {} is not allowed with several `hosts`, which compare ddp, fsdp or hsdp as "
        "PyTorch runs it; `today` names other plans, or give one number of hosts",
        io::quote(schedule)));
  }
  return plans::is_cast(request.request.times.dtype) ? row->as_stored : row->mixed;
}

void check_hosts(const PlanRequest& request) {
  refuse_unfit(request);
  if (!std::ranges::is_sorted(request.hosts, std::less_equal())) {
    throw io::InputError(
        fmt::format("`hosts` must be numbers in ascending order, such as 1,2,4, "
                    "got {}",
                    fmt::join(request.hosts, ",")));
  }
  if (request.request.machines.gpus > 0) {
    throw io::InputError("`gpus` needs one number of hosts: leave it out, or give one");
  }
  if (request.request.machines.machine.empty()) {
    throw io::InputError("`hosts` needs a `machine`, such as p5.48xlarge: give that, too");
  }
  if (request.schedules.size() > 1 || request.wraps.size() > 1) {
    throw io::InputError(
        fmt::format("`{}` needs one number of hosts, not several `hosts`: give one",
                    request.wraps.size() > 1 ? "wrap" : "schedule"));
  }
  if (!request.today.empty() && !request.schedules.empty()) {
    throw io::InputError("`today` and `schedule` both name the job's plan: leave one of them out");
  }
}

SimulateRequest simulation_of(const PlanRequest& request, std::uint32_t hosts) {
  const planner::Request& asked = request.request;
  SimulateRequest made;
  made.input = asked.input;
  made.machines = asked.machines;
  made.machines.hosts = hosts;
  made.times = asked.times;
  if (!request.wraps.empty()) made.wrap = request.wraps.front();
  made.network = asked.network;
  made.plan = today_of(request, hosts);
  return made;
}

/// A simulated step, without the intervals and analyses that simulate() adds.
struct Step {
  sim::Scenario scenario;
  casync::TaskGraph graph;
  sim::Picoseconds iteration{}, compute{};
};

/// Throws io::InputError for invalid requests, and for graphs that do not fit in memory.
Step step_of(const SimulateRequest& request, const Hooks& hooks) {
  look_for_interrupt(hooks);
  Step step = {.scenario = load_scenario(request, hooks), .graph = {}};
  const sim::Scenario& scenario = step.scenario;
  const casync::Folding folding = sim::choose_folding(scenario, sim::Fold::kExactly).folding;
  sim::require_room(sim::graph_size(scenario, folding), io::available_memory(),
                    "compare fewer hosts");
  step.graph = sim::expand(scenario, folding);
  const std::uint32_t steps = sim::steps_per_period(scenario);
  const bool several = scenario.iterations > 1;
  const sim::Result result = sim::simulate(
      scenario, step.graph, several ? sim::Timelines::kRecorded : sim::Timelines::kNone);
  step.iteration = result.iteration / steps;
  step.compute = result.compute / steps;
  if (several) {
    const sim::SteadyState steady =
        sim::steady_state(step.graph, result.timeline, scenario.iterations);
    step.iteration = steady.period / steps;
    step.compute = steady.compute / steps;
  }
  return step;
}

/// Finds the bottleneck of the job by further simulations; empty if they would take too long.
std::string bound_of(const Step& step) {
  constexpr double kMostTasks = 5e5;
  if (static_cast<double>(step.graph.tasks()) > kMostTasks) return {};
  return models::bound_by(sim::gains(step.scenario, step.graph, step.iteration));
}

std::int64_t gpu_memory_of(const PlanRequest& request) {
  if (!request.gpu_memory.empty()) return io::parse_size(request.gpu_memory, "`gpu_memory`");
  return costs::read_machine(request.request.machines.machine).memory_bytes;
}

void fill_memory(const PlanRequest& request, const Step& done, HostsRow& row) {
  const planner::OptimizerRow& optimizer = planner::find_optimizer(request.optimizer);
  const sim::Scenario& scenario = done.scenario;
  row.state_bytes = planner::state_memory(scenario.model, scenario.plan, optimizer).total();
  row.activation_bytes = request.activation_memory.empty()
                             ? scenario.model.activation_bytes
                             : io::parse_size(request.activation_memory, "`activation_memory`");
}

HostsRow hosts_row_of(const SimulateRequest& request, const Step& done) {
  HostsRow row;
  row.hosts = request.machines.hosts;
  row.gpus = done.scenario.cluster.nodes;
  row.iteration_s = casync::to_seconds(done.iteration);
  row.compute_s = casync::to_seconds(done.compute);
  const models::Model& model = done.scenario.model;
  const auto speed = models::throughput(model, row.gpus, row.iteration_s);
  row.units_per_s = speed ? speed->units_per_s : row.gpus * model.micro_steps / row.iteration_s;
  return row;
}

/// Size of bulk groups: that of DDP's buckets, or for large models 1/64 of all gradients, which
/// keeps the simulation short.
std::string group_size(const models::Model& model) {
  constexpr std::int64_t kBucket = 25 << 20, kMostGroups = 64;
  std::int64_t bytes = 0;
  for (const models::Gradient& one : model.gradients) {
    bytes += one.elements * models::size_of(one.dtype);
  }
  return fmt::format("{}B", std::max(kBucket, bytes / kMostGroups));
}

/// A change to try. `change` edits the request, given the result so far.
struct ChangeRow {
  const char* what;
  std::function<bool(SimulateRequest&, const Step&)> change;  ///< false: not for this job
};

const std::vector<ChangeRow>& change_rows() {
  static const std::vector<ChangeRow> rows = {
      {"a network of twice the bandwidth",
       [](SimulateRequest& request, const Step& done) {
         request.machines.bandwidth =
             fmt::format("{:.6g}Gbps", 2 * 8 * done.scenario.cluster.link.bandwidth / 1e9);
         return request.machines.hosts > 1;
       }},
      {"gradients in half precision",
       [](SimulateRequest& request, const Step& done) {
         request.plan = done.scenario.plan.schedule.row().sharded ? "fsdp2_bf16" : "ddp_fp16";
         return true;
       }},
      {"4 times the micro-steps",
       [](SimulateRequest& request, const Step& done) {
         request.times.micro_steps =
             4 * static_cast<std::uint32_t>(done.scenario.model.micro_steps);
         return request.times.batch > 0 && request.times.compute_time.empty();
       }},
      {"twice the batch of a GPU",
       [](SimulateRequest& request, const Step&) {
         request.times.batch *= 2;
         return request.times.batch > 0 && request.times.compute_time.empty();
       }},
      {"compression of gradients to 8 bits (int8block)",
       [](SimulateRequest& request, const Step& done) {
         const bool sharded = done.scenario.plan.schedule.row().sharded;
         request.plan = sharded ? "zeropp" : "all";
         if (!sharded) {
           request.algorithm = "int8block";
           request.topology = "RING";
           request.plan_options.bulk_threshold = request.plan_options.bulk_limit =
               group_size(done.scenario.model);
         }
         return true;
       }},
      {"shards of all GPUs (FSDP2)",
       [](SimulateRequest& request, const Step& done) {
         request.plan = plans::is_cast(request.times.dtype) ? "fsdp2" : "fsdp2_mixed";
         return !done.scenario.plan.schedule.row().sharded;
       }},
      {"shards within a host (HSDP)",
       [](SimulateRequest& request, const Step& done) {
         request.plan = "hsdp_mixed";
         return done.scenario.plan.schedule.row().sharded && request.machines.hosts > 1;
       }},
  };
  return rows;
}

std::vector<HostsChange> changes_of(const PlanRequest& asked, const HostsAnswer& answer,
                                    const SimulateRequest& request, const Step& done) {
  const double before = hosts_row_of(request, done).units_per_s;
  std::vector<HostsChange> changes;
  for (const ChangeRow& row : change_rows()) {
    SimulateRequest changed = request;
    if (!row.change(changed, done)) continue;
    try {
      const Step other = step_of(changed, {});
      HostsRow after = hosts_row_of(changed, other);
      fill_memory(asked, other, after);
      changes.push_back({row.what, after.units_per_s / before, answer.fits(after)});
    } catch (const io::InputError&) {
      continue;  // no plan of that kind for this model
    }
  }
  std::ranges::stable_sort(changes, std::greater(), &HostsChange::speedup);
  return changes;
}

/// Clause for the first number of hosts on which the job does not fit: "on 1 host it does not fit:
/// 95GB of a GPU's 80GB, 75GB of them activations, …; ". Empty if it fits on all.
std::string what_does_not_fit(const HostsAnswer& answer) {
  const auto fits = [&](const HostsRow& row) { return answer.fits(row); };
  const auto row = std::ranges::find_if_not(answer.rows, fits);
  if (row == answer.rows.end()) return {};
  std::string text = fmt::format(
      "on {} host{} it does not fit: {} of a GPU's {}", row->hosts, row->hosts > 1 ? "s" : "",
      io::format_amount(row->memory_bytes(), 3), io::format_amount(answer.gpu_memory_bytes, 3));
  if (row->activation_bytes > 0) {
    text += fmt::format(
        ", {} of them activations, which `checkpoint` full or a smaller `batch` "
        "reduce",
        io::format_amount(row->activation_bytes, 3));
  }
  return text + "; ";
}

std::string sentence_of(const HostsAnswer& answer) {
  const HostsRow& first = answer.rows.front();
  const HostsRow& last = answer.rows.back();
  const auto stop =
      std::ranges::find_if(answer.rows, [](const HostsRow& row) { return row.added < kPays; });
  std::string text = what_does_not_fit(answer);
  if (answer.rows.size() > 1) {
    text += stop == answer.rows.end()
                ? fmt::format("more hosts pay up to {}", last.hosts)
                : fmt::format("more than {} host{} do not pay", std::prev(stop)->hosts,
                              std::prev(stop)->hosts > 1 ? "s" : "");
    text += fmt::format(": {} train {:.2f} times as fast as {}; ", last.hosts,
                        last.units_per_s / first.units_per_s, first.hosts);
  }
  const double share = last.exposed_s() / last.iteration_s;
  text += fmt::format("on {} ", last.hosts);
  if (!last.bound_by.empty()) text += fmt::format("the job is bound by {}, and ", last.bound_by);
  text += fmt::format("{:.0f} % of a step is exposed communication", 100 * share);
  std::size_t said = 0;
  for (const HostsChange& change : answer.changes) {
    if (change.speedup < kWorthSaying || said == kMostSaid) break;
    if (!change.fits) continue;
    text += said++ == 0 ? fmt::format("; with {} it would be {:.2f} times as fast", change.what,
                                      change.speedup)
                        : fmt::format(", with {} {:.2f} times", change.what, change.speedup);
  }
  return text;
}

}  // namespace

HostsAnswer compare_hosts(const PlanRequest& request, const Hooks& hooks) {
  check_hosts(request);
  HostsAnswer answer;
  answer.gpu_memory_bytes = gpu_memory_of(request);
  std::size_t left = request.hosts.size();
  Hooks quiet;  // only the last row reports assumptions
  quiet.interrupted = hooks.interrupted;
  for (const std::uint32_t count : request.hosts) {
    const SimulateRequest simulation = simulation_of(request, count);
    const Step done = step_of(simulation, --left == 0 ? hooks : quiet);
    HostsRow row = hosts_row_of(simulation, done);
    row.bound_by = bound_of(done);
    fill_memory(request, done, row);
    if (!answer.rows.empty()) {
      const HostsRow &first = answer.rows.front(), &before = answer.rows.back();
      const double each = first.units_per_s / first.hosts;
      row.added = (row.units_per_s - before.units_per_s) / (row.hosts - before.hosts) / each;
      row.efficiency = row.units_per_s / row.hosts / each;
    }
    answer.rows.push_back(row);
    if (left > 0) continue;
    answer.plan = simulation.plan;
    const models::Model& model = done.scenario.model;
    const auto speed = models::throughput(model, row.gpus, row.iteration_s);
    answer.unit = speed ? speed->unit : "batches";
    answer.changes = changes_of(request, answer, simulation, done);
  }
  answer.sentence = sentence_of(answer);
  return answer;
}

namespace {

void fill_hosts_row(Record& record, const HostsRow& row) {
  record.add("hosts", row.hosts, "Number of hosts");
  record.add("gpus", row.gpus, "GPUs of all hosts together");
  record.add("iteration_s", row.iteration_s, "Time of a step, in seconds");
  record.add("compute_s", row.compute_s, "Computation in it");
  record.add("exposed_communication_s", row.exposed_s(),
             "Exposed communication of a step, in seconds");
  record.add("units_per_s", row.units_per_s, "Throughput of all GPUs, in `unit`");
  record.add("added", row.added,
             "Throughput gained per added host, relative to a host of the first row");
  record.add("efficiency", row.efficiency, "Throughput per host, relative to the first row");
  record.add("bound_by", row.bound_by.empty() ? std::nullopt : std::optional(row.bound_by),
             "Component whose speed-up saves most; null if the graph is too large to analyse");
  record.add("state_bytes", row.state_bytes,
             "Memory of a GPU for parameters, gradients and the optimizer's state, in bytes");
  record.add("activation_bytes", row.activation_bytes,
             "Memory of a GPU for activations, in bytes; 0 if unknown");
}

void fill_change(Record& record, const HostsChange& change) {
  record.add("what", change.what, "Change, for the largest number of hosts");
  record.add("speedup", change.speedup, "Factor by which throughput grows");
  record.add("fits", change.fits, "True if the changed job fits into the memory of a GPU");
}

}  // namespace

void fill(Record& record, const HostsAnswer& answer) {
  record.add("plan", answer.plan, "Baseline that the job runs");
  record.add("unit", answer.unit, "Unit of the throughput: tokens, images, or batches of a GPU");
  record.add("gpu_memory_bytes", answer.gpu_memory_bytes, "Memory of a GPU, in bytes");
  record.list("hosts", answer.rows, "One row per number of hosts, in the order requested",
              fill_hosts_row);
  record.list("changes", answer.changes, "Changes, best first", fill_change);
  record.add("sentence", sentence(answer.sentence),
             "Summary: the number of hosts up to which more pay, the job's bottleneck, and changes "
             "that would help");
}

constinit const ResultForm kHostsForm = {"plan", "Numbers of hosts compared",
                                         "Result of a plan request with several `hosts`",
                                         schema_of<HostsAnswer>};

io::Document document(const HostsAnswer& answer) { return document_of(answer); }

}  // namespace hipress::requests
