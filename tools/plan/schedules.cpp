#include "tools/plan/schedules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <ostream>
#include <string>

#include "costs/assumed_spread.hpp"
#include "costs/description.hpp"
#include "io/quantity.hpp"
#include "io/spelling.hpp"
#include "requests/bandwidths.hpp"
#include "sim/compute_utilisation.hpp"
#include "tools/plan/report.hpp"

namespace hipress::planner {
namespace {

using requests::BandwidthTable;
using requests::Planned;
using requests::ScheduleRows;

std::string rate(const std::optional<double>& bits_per_s) {
  return bits_per_s ? io::format_bit_rate(*bits_per_s / 8, 3) : "-";
}

void print_tables(std::ostream& out, const std::vector<BandwidthTable>& tables) {
  out << fmt::format("{:<44}{:<18}{:>7}  {:<14}{}\n", "schedule", "algorithm", "busy", "bandwidth",
                     "in 8 runs of 10");
  for (const BandwidthTable& table : tables) {
    for (const RequiredBandwidth& row : table.rows) {
      const std::string range =
          row.reason.empty()
              ? fmt::format("{} to {}", rate(row.bits_per_s_p10), rate(row.bits_per_s_p90))
              : row.reason;
      out << fmt::format("{:<44}{:<18}{:>5.4g} %  {:<14}{}\n", table.schedule, table.algorithm,
                         100 * row.utilization, rate(row.bits_per_s), range);
    }
  }
}

/// Memory in words: "2GB for parameters, 2GB for gradients …".
std::string describe_memory(const StateMemory& memory) {
  std::string text;
  const auto add = [&](std::int64_t bytes, std::string_view what) {
    if (bytes > 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", io::format_amount(bytes, 3), what);
    }
  };
  add(memory.parameters, "parameters");
  add(memory.gradients, "gradients");
  add(memory.optimizer, "optimizer state");
  add(memory.gathered, "gathered layers");
  add(memory.reductions, "gradients to reduce");
  add(memory.residuals, "residuals of codecs");
  return text;
}

double busy(const ScheduledPlan& plan) {
  return sim::share_of_compute(plan.compute_s, plan.iteration_s - plan.compute_s);
}

/// Topology that carries the shards or, if they do not travel in messages, the plan's own.
const std::string& topology_shown(const casync::Plan& plan) {
  return plan.shards_in_messages() ? plan.shards_by : plan.topology;
}

constexpr const char* kRow = "{:<44}{:<28}{:>6}  {:<12}{:<14}{:<12}{:<12}{}\n";

void print_row(std::ostream& out, const std::string& name, const ScheduledPlan& plan,
               const costs::Spread& spread) {
  const sim::Interval range = sim::interval(plan.response, spread);
  out << fmt::format(
      fmt::runtime(kRow), name,
      fmt::format("{} ({} to {})", io::format_duration(plan.iteration_s, 3),
                  io::format_duration(range.p10_s, 3), io::format_duration(range.p90_s, 3)),
      fmt::format("{:.1f} %", 100 * busy(plan)),
      fmt::format("{} of {}", plan.compressed, plan.plan.decisions.size()),
      topology_shown(plan.plan),
      io::format_amount(static_cast<std::int64_t>(plan.traffic.bytes_per_step), 3),
      io::format_bit_rate(plan.traffic.peak_bits_per_s / 8, 3),
      io::format_amount(plan.memory.total(), 3));
}

std::string about_activations(const Problem& problem) {
  if (problem.activation_bytes == 0) return "without activations";
  return "beside " + io::format_amount(problem.activation_bytes, 3) + " of activations";
}

/// Prints the frameworks' baselines in the columns of print_row().
void print_baselines(std::ostream& out, const Planned& planned) {
  const costs::Spread spread = costs::spread_of(planned.prepared->profile);
  const Problem& problem = *planned.advice.problem;
  out << "\ncompared with\n";
  for (const Baseline& one : planned.advice.comparison.baselines) {
    if (one.row().title.empty()) continue;
    if (one.iteration_s) {
      print_row(out, fmt::format("{}: {}", one.name, one.plan.schedule.text()),
                figures_of(problem, one.plan, one.transfer_order), spread);
    } else {
      out << fmt::format("{:<44}not simulated: {}\n", one.name,
                         io::as_command_line(one.diagnostic));
    }
  }
}

void print_not_chosen(std::ostream& out, const Planned& planned) {
  const ScheduleRows& rows = *planned.schedules;
  if (rows.plans.size() + rows.left_out.size() == 1) return;
  out << "\nnot chosen\n";
  for (const ScheduledPlan& plan : rows.plans) {
    if (const auto why = planned.why_not_chosen(plan)) {
      out << fmt::format("{:<44}{}\n", plan.plan.schedule.text(), *why);
    }
  }
  for (const requests::LeftOutSchedule& one : rows.left_out) {
    out << fmt::format("{:<44}{}\n", one.schedule, io::as_command_line(one.reason));
  }
}

void print_chosen(std::ostream& out, const ScheduledPlan& chosen) {
  out << fmt::format("{}: {} a step, {:.1f} % of it computation\n", chosen.plan.schedule.text(),
                     io::format_duration(chosen.iteration_s), 100 * busy(chosen));
  if (chosen.lower_bound_s > 0) {
    out << fmt::format(
        "no plan of this schedule with these algorithms takes less than {} ({:.1f} % less)\n",
        io::format_duration(chosen.lower_bound_s),
        100 * (1 - chosen.lower_bound_s / chosen.iteration_s));
  }
  if (const std::string lost = requests::gives_up(chosen); !lost.empty()) out << lost << "\n";
}

void print_wraps(std::ostream& out, const ScheduleRows& rows) {
  out << "\nwrapped by\n";
  for (const requests::WrapRow& row : rows.wraps) {
    const std::string what =
        row.plan ? fmt::format("{} by {}", io::format_duration(row.plan->iteration_s, 3),
                               row.plan->plan.schedule.text())
                 : "";
    const std::string why = row.not_chosen.empty() ? "chosen" : io::as_command_line(row.not_chosen);
    out << fmt::format("{:<44}{:<44}{}\n", row.rule, what, why);
  }
}

void print_mix(std::ostream& out, const Problem& problem) {
  const std::string mix = costs::describe_mix(problem.machines->cluster, problem.model);
  if (!mix.empty()) out << "computation: " << mix << '\n';
}

}  // namespace

void print_schedules(std::ostream& out, const Planned& planned) {
  const costs::Spread spread = costs::spread_of(planned.prepared->profile);
  const ScheduleRows& rows = *planned.schedules;
  const ScheduledPlan& chosen = rows.plans[rows.chosen];
  print_chosen(out, chosen);
  out << '\n'
      << fmt::format(fmt::runtime(kRow), "schedule", "step (in 8 runs of 10)", "busy", "compressed",
                     "by", "a step", "at most", "memory");
  for (const ScheduledPlan& plan : rows.plans) {
    print_row(out, plan.plan.schedule.text(), plan, spread);
  }
  print_not_chosen(out, planned);
  print_baselines(out, planned);
  if (!rows.wraps.empty()) print_wraps(out, rows);
  const bool in_shards = std::ranges::any_of(rows.plans, [](const ScheduledPlan& plan) {
    return kind_of(plan.plan.schedule) == JobKind::kSharding;
  });
  if (in_shards) out << "\nbytes of sharded schedules are a GPU's, within its host too";
  out << "\nmemory: of each GPU, " << about_activations(*planned.advice.problem)
      << ", with optimizer " << planned.request.optimizer << "; of the plan's "
      << describe_memory(chosen.memory) << '\n';
  print_mix(out, *planned.advice.problem);
}

void run_bandwidths(const Options& options, const requests::Hooks& hooks) {
  const requests::Bandwidths found = requests::find_bandwidths(options.request, hooks);
  if (options.json) {
    std::cout << document(found).print(2) << '\n';
    return;
  }
  print_tables(std::cout, found.tables);
  print_mix(std::cout, found.prepared->problem);
}

}  // namespace hipress::planner
