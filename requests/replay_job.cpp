#include "requests/replay_job.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "casync/topology.hpp"
#include "costs/cluster.hpp"
#include "io/error.hpp"
#include "planner/baselines/named_plans.hpp"
#include "plans/broadcast.hpp"
#include "replay/gradient_files.hpp"
#include "requests/shared_fields.hpp"
#include "sim/simulator.hpp"

namespace hipress::requests {
namespace {

std::string topology_of(const ReplayRequest& request) {
  if (request.given.contains("topology")) return request.topology;
  return plans::topology_of_plan(request.plan).value_or(request.topology);
}

/// Resolves the plan. Named plans are made for the profile of the prediction, or a published one.
plans::ResolvedPlan resolve(const ReplayRequest& request, const plans::PlanContext& context) {
  if (planner::is_searched(request.plan)) {
    throw io::InputError(
        fmt::format("`plan` {}: write it to a file with hipress-plan `output` plan.yaml, and give "
                    "`plan` plan.yaml",
                    request.plan));
  }
  costs::Profile profile;
  costs::Cluster cluster;
  if (planner::is_named_plan(request.plan)) {
    costs::LoadedMachines machines = costs::load(request.machines, context.nodes, context.nodes);
    profile = std::move(machines.profile);
    cluster = std::move(machines.cluster);
  }
  return planner::resolve_plan(
      request.plan, context,
      {.profile = profile, .cluster = cluster, .network = sim::parse_network(request.network)});
}

void prepare_means(const ReplayRequest& request, const std::optional<io::Launch>& launch,
                   std::uint32_t ranks) {
  if (request.replay.means.empty()) return;
  const auto first = meets(launch) ? static_cast<std::uint32_t>(launch->rank) : 0;
  replay::prepare_means(request.replay.means, first, meets(launch) ? 1 : ranks);
}

/// Checks the encoder states to read, and creates the folder to write states to.
void prepare_states(const ReplayRequest& request, const ReplayJob& job, std::uint32_t ranks) {
  const replay::ReplayOptions& options = request.replay;
  if (options.load_state.empty() && options.save_state.empty()) return;
  if (options.device) {
    throw io::InputError(
        "`load_state` and `save_state` are for replays on CPUs; leave out `device`");
  }
  if (!options.save_state.empty()) replay::prepare_states(options.save_state);
  if (options.load_state.empty()) return;
  for (std::size_t i = 0; i < job.plan.codecs.size(); ++i) {
    const kernels::CodecTraits& traits = job.plan.codecs[i]->traits();
    if (traits.additive || !traits.error_feedback) continue;
    throw io::InputError(
        fmt::format("`load_state` needs a plan whose only residuals are those of stages, and this "
                    "one compresses with {}; leave it out, or take another plan",
                    io::quote(job.plan.plan.algorithms[i].name)));
  }
  replay::require_states(options.load_state, ranks);
}

}  // namespace

ReplayJob make_job(const ReplayRequest& request, std::uint32_t ranks) {
  ReplayJob job;
  job.model = plans::read_input(request.input, request.plan, topology_of(request), request.times,
                                job.diagnostics);
  plans::PlanContext context = {.model = job.model,
                                .topology = topology_of(request),
                                .nodes = ranks,
                                .algorithm = request.algorithm,
                                .trust = request.trust};
  if (request.given.contains("timeout")) context.compile_timeout_s = request.replay.timeout_s;
  job.plan = resolve(request, context);
  if (job.plan.transfer_order.value_or(casync::TransferOrder::kReady) !=
      casync::TransferOrder::kReady) {
    throw io::InputError(request.plan, 0,
                         "transfer_order: a replay sends ready messages first; plan with "
                         "`transfer_order` ready (hipress-plan), or leave the key out");
  }
  plans::apply(request.plan_options, context, job.plan);
  if (!request.schedule.empty()) {
    job.plan.plan.schedule = read_schedule(request.schedule, job.model);
  }
  plans::require_shards(request.plan_options, job.plan.plan.schedule);
  if (!request.machines.cluster.empty() && job.plan.plan.rails == 1) {
    job.plan.plan.rails = costs::rails(costs::load(request.machines, ranks, ranks).cluster);
  }
  job.graph = casync::expand_to_run(job.model, job.plan.plan);
  casync::check(job.graph);
  return job;
}

std::uint32_t count_ranks(const ReplayRequest& request, const std::optional<io::Launch>& launch) {
  if (launch) return size_of(*launch, request.nnodes, request.ranks);
  if (request.nnodes > 0) return request.nnodes;
  if (const auto planned = plans::nodes_of_plan(request.plan)) return *planned;
  if (!request.machines.cluster.empty()) {
    if (const auto nodes = costs::nodes_of_cluster(request.machines.cluster)) return *nodes;
  }
  throw io::InputError(
      "`nnodes` is required unless a launcher (torchrun, srun, mpirun) starts the ranks, or a plan "
      "YAML or a cluster file gives their number");
}

void prepare_folders(const ReplayRequest& request, const ReplayJob& job,
                     const std::optional<io::Launch>& launch, std::uint32_t ranks) {
  prepare_means(request, launch, ranks);
  prepare_states(request, job, ranks);
}

}  // namespace hipress::requests
