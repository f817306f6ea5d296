#include "planner/schedules/sharded_baselines.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "io/error.hpp"
#include "planner/baselines/zeropp.hpp"
#include "planner/schedules/sharded.hpp"

namespace hipress::planner {
namespace {

/// Gathers and reductions as the model's types store them.
casync::Plan as_stored(const Problem& problem, const std::string& schedule) {
  casync::Plan plan = {
      .strategy = "allreduce", .nodes = problem.nodes, .algorithms = {}, .decisions = {}};
  plan.decisions.resize(problem.model.gradients.size());
  plan.schedule = casync::Schedule::parse(schedule);
  return plan;
}

bool is_in_half_precision(const models::Gradient& gradient) {
  return gradient.dtype != models::Dtype::kFloat32;
}

/// The same in bf16; none where nothing of the model is stored in fp32.
std::optional<casync::Plan> in_bf16(const Problem& problem, const std::string& schedule) {
  if (std::ranges::all_of(problem.model.gradients, is_in_half_precision)) return std::nullopt;
  casync::Plan plan = as_stored(problem, schedule);
  plan.algorithms = {algorithm("bf16")};
  plan.decisions.assign(plan.decisions.size(), {.algorithm = 0});
  plan.gathers.assign(plan.decisions.size(), 0);
  return plan;
}

/// Gathers in bf16 and reductions as stored: a policy that adds gradients in fp32.
std::optional<casync::Plan> mixed(const Problem& problem, const std::string& schedule) {
  std::optional<casync::Plan> plan = in_bf16(problem, schedule);
  if (plan) plan->decisions.assign(plan->decisions.size(), {});
  return plan;
}

/// HSDP with the shards of a host's GPUs; empty: hosts are not alike, or there is one.
std::string of_hosts(const Problem& problem) {
  const std::uint32_t each = costs::nodes_per_host(problem.machines->cluster);
  const bool several = each > 1 && each < problem.nodes && problem.nodes % each == 0;
  return several ? "hsdp(shard=" + std::to_string(each) + ")" : "";
}

std::optional<casync::Plan> fsdp2(const Problem& problem) { return as_stored(problem, "fsdp"); }

std::optional<casync::Plan> fsdp2_bf16(const Problem& problem) { return in_bf16(problem, "fsdp"); }

std::optional<casync::Plan> fsdp2_mixed(const Problem& problem) { return mixed(problem, "fsdp"); }

std::optional<casync::Plan> fsdp1(const Problem& problem) {
  return as_stored(problem, "fsdp(prefetch=pre, in_flight=2)");
}

std::optional<casync::Plan> fsdp1_post(const Problem& problem) {
  return as_stored(problem, "fsdp(prefetch=post)");
}

std::optional<casync::Plan> hsdp(const Problem& problem) {
  const std::string schedule = of_hosts(problem);
  return schedule.empty() ? std::nullopt : std::optional(as_stored(problem, schedule));
}

std::optional<casync::Plan> hsdp_bf16(const Problem& problem) {
  const std::string schedule = of_hosts(problem);
  return schedule.empty() ? std::nullopt : in_bf16(problem, schedule);
}

std::optional<casync::Plan> hsdp_mixed(const Problem& problem) {
  const std::string schedule = of_hosts(problem);
  return schedule.empty() ? std::nullopt : mixed(problem, schedule);
}

std::optional<casync::Plan> zero_plus_plus(const Problem& problem) { return zeropp(problem); }

constexpr std::array kRows = {
    ShardedBaselineRow{.name = "fsdp2",
                       .title = "FSDP2 by default",
                       .help = "PyTorch's FSDP2, each layer wrapped, in the model's types",
                       .make = fsdp2,
                       .is_default = true},
    ShardedBaselineRow{.name = "fsdp2_bf16",
                       .title = "FSDP2 in bf16",
                       .help = "the same with a MixedPrecisionPolicy of bf16, of a model in fp32",
                       .make = fsdp2_bf16,
                       .is_default = true},
    ShardedBaselineRow{.name = "fsdp2_mixed",
                       .title = "FSDP2 in bf16 and fp32",
                       .help = "the same with param_dtype bf16 and reduce_dtype fp32",
                       .make = fsdp2_mixed},
    ShardedBaselineRow{
        .name = "fsdp1",
        .title = "FSDP1 by default",
        .help = "PyTorch's FSDP1: BACKWARD_PRE, limit_all_gathers; in the order of FSDP2's",
        .make = fsdp1},
    ShardedBaselineRow{
        .name = "fsdp1_post",
        .title = "FSDP1 with BACKWARD_POST",
        .help = "FSDP1 with backward_prefetch=BACKWARD_POST, which takes less memory",
        .make = fsdp1_post},
    ShardedBaselineRow{.name = "hsdp",
                       .title = "HSDP",
                       .help = "FSDP2 on a mesh of hosts and their GPUs, in the model's types",
                       .make = hsdp},
    ShardedBaselineRow{.name = "hsdp_bf16",
                       .title = "HSDP in bf16",
                       .help = "the same in bf16, of a model in fp32",
                       .make = hsdp_bf16},
    ShardedBaselineRow{.name = "hsdp_mixed",
                       .title = "HSDP in bf16 and fp32",
                       .help = "the same with param_dtype bf16 and reduce_dtype fp32",
                       .make = hsdp_mixed},
    ShardedBaselineRow{.name = "zeropp",
                       .title = "ZeRO++",
                       .help = "DeepSpeed's ZeRO++: qwZ, hpZ and qgZ",
                       .make = zero_plus_plus,
                       .compresses = true},
};

}  // namespace

std::span<const ShardedBaselineRow> sharded_baselines() { return kRows; }

std::vector<ShardedBaseline> simulate_sharded_baselines(const Problem& problem,
                                                        std::string_view optimizer,
                                                        const std::string& shards_by) {
  const GpuProblem gpus(problem);
  std::vector<ShardedBaseline> baselines;
  for (const ShardedBaselineRow& row : kRows) {
    std::optional<casync::Plan> plan = row.make(gpus.problem());
    if (!plan) continue;
    if (shards_by != casync::kLibrary) {
      plan->shards_by = shards_by;
      send_as_stored(gpus.problem().model, *plan);
    }
    ShardedBaseline baseline = {.row = &row, .found = {}};
    try {
      baseline.found = figures_of(gpus.problem(), *std::move(plan), optimizer);
    } catch (const io::InputError& error) {
      baseline.diagnostic = error.what();
    }
    baselines.push_back(std::move(baseline));
  }
  return baselines;
}

}  // namespace hipress::planner
