#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "planner/baselines/baselines.hpp"
#include "planner/search/shards.hpp"

/// Baselines of sharded jobs.
namespace hipress::planner {
namespace {

constexpr std::string_view kCollectives = "allreduce";

/// Gathers and reduces in the model's types; makes no plan if `schedule` is empty.
casync::Plan as_stored(const Problem& problem, const std::string& schedule) {
  casync::Plan plan = {.topology = std::string(kCollectives),
                       .nodes = problem.nodes,
                       .algorithms = {},
                       .decisions = {}};
  if (schedule.empty()) return plan;
  plan.decisions.resize(problem.model.gradients.size());
  plan.schedule = casync::Schedule::parse(schedule);
  plan.shards_by = problem.shards_by;
  send_as_stored(problem.model, plan);
  return plan;
}

bool is_in_half_precision(const models::Gradient& gradient) {
  return gradient.dtype != models::Dtype::kFloat32;
}

/// Gathers in bf16, and reduces in bf16 or fp32; makes no plan if nothing in the model is fp32.
casync::Plan in_bf16(const Problem& problem, const std::string& schedule, bool reductions) {
  const bool already = std::ranges::all_of(problem.model.gradients, is_in_half_precision);
  casync::Plan plan = as_stored(problem, already ? "" : schedule);
  if (plan.decisions.empty()) return plan;
  plan.algorithms = {algorithm("bf16")};
  plan.gathers.assign(plan.decisions.size(), 0);
  plan.decisions.assign(plan.decisions.size(),
                        {.algorithm = reductions ? std::int8_t{0} : casync::kRaw});
  send_as_stored(problem.model, plan);
  return plan;
}

/// HSDP that shards within hosts. Empty unless there are several hosts, of several GPUs each.
std::string of_hosts(const Problem& problem) {
  const std::uint32_t each = costs::nodes_per_host(problem.machines->cluster);
  const bool several = each > 1 && each < problem.nodes && problem.nodes % each == 0;
  return several ? "hsdp(shard=" + std::to_string(each) + ")" : "";
}

casync::Plan fsdp2(const Problem& problem) { return as_stored(problem, "fsdp"); }
casync::Plan fsdp2_bf16(const Problem& problem) { return in_bf16(problem, "fsdp", true); }
casync::Plan fsdp2_mixed(const Problem& problem) { return in_bf16(problem, "fsdp", false); }
casync::Plan fsdp1(const Problem& problem) {
  return as_stored(problem, "fsdp(prefetch=pre, in_flight=2)");
}
casync::Plan fsdp1_post(const Problem& problem) {
  return as_stored(problem, "fsdp(prefetch=post)");
}
casync::Plan hsdp(const Problem& problem) { return as_stored(problem, of_hosts(problem)); }
casync::Plan hsdp_bf16(const Problem& problem) { return in_bf16(problem, of_hosts(problem), true); }
casync::Plan hsdp_mixed(const Problem& problem) {
  return in_bf16(problem, of_hosts(problem), false);
}

casync::Plan zeropp(const Problem& problem) {
  const std::uint32_t each = costs::nodes_per_host(problem.machines->cluster);
  const bool several = each > 1 && each < problem.nodes && problem.nodes % each == 0;
  const std::string reshard = several ? "(reshard=" + std::to_string(each) + ")" : "";
  casync::Plan plan = as_stored(problem, "fsdp" + reshard);
  plan.algorithms = {algorithm("int8block"), algorithm("int4block")};
  plan.decisions.assign(plan.decisions.size(), {.algorithm = 1});
  plan.gathers.assign(plan.decisions.size(), 0);
  if (several) plan.exchange_within = each;
  return plan;
}

constexpr std::array kShardedRows = {
    BaselineRow{.name = "fsdp2",
                .help = "PyTorch's FSDP2, each layer wrapped, in the model's types",
                .make = fsdp2,
                .compresses = false,
                .topology = kCollectives,
                .kind = JobKind::kSharding,
                .title = "FSDP2 by default",
                .is_default = true},
    BaselineRow{.name = "fsdp2_bf16",
                .help = "the same with a MixedPrecisionPolicy of bf16, of a model in fp32",
                .make = fsdp2_bf16,
                .compresses = false,
                .topology = kCollectives,
                .kind = JobKind::kSharding,
                .title = "FSDP2 in bf16"},
    BaselineRow{.name = "fsdp2_mixed",
                .help = "the same with param_dtype bf16 and reduce_dtype fp32",
                .make = fsdp2_mixed,
                .compresses = false,
                .topology = kCollectives,
                .kind = JobKind::kSharding,
                .title = "FSDP2 in bf16 and fp32",
                .is_default = true},
    BaselineRow{.name = "fsdp1",
                .help = "PyTorch's FSDP1: BACKWARD_PRE, limit_all_gathers; in the order of FSDP2's",
                .make = fsdp1,
                .compresses = false,
                .topology = kCollectives,
                .kind = JobKind::kSharding,
                .title = "FSDP1 by default"},
    BaselineRow{.name = "fsdp1_post",
                .help = "FSDP1 with backward_prefetch=BACKWARD_POST, which takes less memory",
                .make = fsdp1_post,
                .compresses = false,
                .topology = kCollectives,
                .kind = JobKind::kSharding,
                .title = "FSDP1 with BACKWARD_POST"},
    BaselineRow{.name = "hsdp",
                .help = "FSDP2 on a mesh of hosts and their GPUs, in the model's types",
                .make = hsdp,
                .compresses = false,
                .topology = kCollectives,
                .kind = JobKind::kSharding,
                .title = "HSDP"},
    BaselineRow{.name = "hsdp_bf16",
                .help = "the same in bf16, of a model in fp32",
                .make = hsdp_bf16,
                .compresses = false,
                .topology = kCollectives,
                .kind = JobKind::kSharding,
                .title = "HSDP in bf16"},
    BaselineRow{.name = "hsdp_mixed",
                .help = "the same with param_dtype bf16 and reduce_dtype fp32",
                .make = hsdp_mixed,
                .compresses = false,
                .topology = kCollectives,
                .kind = JobKind::kSharding,
                .title = "HSDP in bf16 and fp32"},
    BaselineRow{.name = "zeropp",
                .help = "DeepSpeed's ZeRO++: schedule fsdp that gathers in int8block, for backward "
                        "within hosts, and "
                        "reduces in int4block, within hosts first",
                .make = zeropp,
                .topology = kCollectives,
                .kind = JobKind::kSharding,
                .title = "ZeRO++"},
};

}  // namespace

std::span<const BaselineRow> sharded_baselines() { return kShardedRows; }

}  // namespace hipress::planner
