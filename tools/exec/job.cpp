#include "tools/exec/job.hpp"

#include <fmt/format.h>

#include <utility>

#include "casync/strategy.hpp"
#include "costs/cluster.hpp"
#include "io/error.hpp"
#include "planner/baselines/named_plans.hpp"
#include "plans/broadcast.hpp"
#include "requests/shared_fields.hpp"
#include "sim/simulator.hpp"

namespace hipress::replay {
namespace {

std::string topology_of(const CommandLine& line) {
  if (line.topology_given) return line.topology;
  return plans::topology_of_plan(line.plan).value_or(line.topology);
}

/// Baselines are made for the costs that are predicted with, else for published ones.
plans::ResolvedPlan resolve(const CommandLine& line, const plans::PlanContext& context) {
  if (planner::is_searched(line.plan)) {
    throw io::InputError(
        fmt::format("--plan {}: write it to a file with hipress-plan --output plan.yaml, and give "
                    "--plan plan.yaml",
                    line.plan));
  }
  costs::Profile profile;
  costs::Cluster cluster;
  if (planner::is_named_plan(line.plan)) {
    costs::LoadedMachines machines = costs::load(line.machines, context.nodes, context.nodes);
    profile = std::move(machines.profile);
    cluster = std::move(machines.cluster);
  }
  return planner::resolve_plan(
      line.plan, context,
      {.profile = profile, .cluster = cluster, .network = sim::parse_network(line.network)});
}

}  // namespace

Job make_job(const CommandLine& line, std::uint32_t nodes) {
  Job job;
  job.model =
      plans::read_input(line.input, line.plan, topology_of(line), line.times, job.diagnostics);
  plans::PlanContext context = {.model = job.model,
                                .strategy = topology_of(line),
                                .nodes = nodes,
                                .algorithm = line.algorithm,
                                .trust = line.trust};
  if (line.timeout_given) context.compile_timeout_s = line.replay.timeout_s;
  job.plan = resolve(line, context);
  if (job.plan.transfer_order.value_or(casync::TransferOrder::kReady) !=
      casync::TransferOrder::kReady) {
    throw io::InputError(line.plan +
                         ": transfer_order: this tool sends what is ready first; plan with "
                         "--transfer-order ready, or leave the key out");
  }
  plans::apply(line.plan_options, context, job.plan);
  if (!line.schedule.empty()) {
    job.plan.plan.schedule = requests::read_schedule(line.schedule, job.model);
  }
  plans::require_shards(line.plan_options, job.plan.plan.schedule);
  job.graph = casync::expand_to_run(job.model, job.plan.plan);
  casync::check(job.graph);
  return job;
}

std::uint32_t count_ranks(const CommandLine& line, const std::optional<io::Launch>& launch) {
  if (!launch) {
    if (line.nnodes > 0) return line.nnodes;
    if (const auto planned = plans::nodes_of_plan(line.plan)) return *planned;
    if (!line.machines.cluster.empty()) {
      if (const auto nodes = costs::nodes_of_cluster(line.machines.cluster)) return *nodes;
    }
    throw io::InputError(
        "--nnodes is required unless a launcher (torchrun, srun, mpirun) starts the ranks, or a "
        "plan YAML or a cluster file says how many there are");
  }
  const std::uint32_t size = tools::size_of(*launch, line.nnodes);
  tools::require_rendezvous(*launch, line.job);
  return size;
}

}  // namespace hipress::replay
