#include "planner/baselines/ddp.hpp"

#include <map>
#include <string>
#include <utility>

#include "casync/layout.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {
namespace {

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr std::int64_t kFirstBucketBytes = kMebibyte;

casync::Plan in_buckets(const Problem& problem, const casync::Decision& decision,
                        int cap_mb = kBucketCap_mb) {
  casync::Plan plan = {
      .topology = "allreduce", .nodes = problem.nodes, .algorithms = {}, .decisions = {}};
  if (problem.machines) plan.gpus_per_node = problem.machines->cluster.gpus_per_node;
  plan.decisions.assign(problem.model.gradients.size(), decision);
  for (std::vector<std::uint32_t>& bucket : ddp_buckets(problem.model, cap_mb)) {
    if (bucket.size() > 1) plan.bulk_groups.push_back(std::move(bucket));
  }
  return plan;
}

std::string powersgd_of(const Problem& problem) {
  const std::string_view name = kernels::name_of_algorithm(kDdpPowerSgd);
  for (const std::string& algorithm : problem.algorithms) {
    if (kernels::name_of_algorithm(algorithm) == name) return algorithm;
  }
  return std::string(kDdpPowerSgd);
}

}  // namespace

std::vector<std::vector<std::uint32_t>> ddp_buckets(const models::Model& model, int cap_mb) {
  struct Filling {
    std::size_t bucket = 0;
    std::int64_t bytes = 0, limit = kFirstBucketBytes;
    bool open = false;
  };
  std::map<models::Dtype, Filling> all;
  std::vector<std::vector<std::uint32_t>> buckets;
  for (const std::uint32_t g : casync::backward_order(model)) {
    const models::Gradient& gradient = model.gradients[g];
    Filling& filling = all[gradient.dtype];
    if (!filling.open) {
      filling.bucket = buckets.size();
      buckets.emplace_back();
      filling.open = true;
    }
    buckets[filling.bucket].push_back(g);
    filling.bytes += gradient.elements * models::size_of(gradient.dtype);
    if (filling.bytes < filling.limit) continue;
    filling = {.limit = cap_mb * kMebibyte};
  }
  return buckets;
}

casync::Plan ddp(const Problem& problem) { return ddp(problem, kBucketCap_mb); }

casync::Plan ddp(const Problem& problem, int cap_mb) {
  casync::Plan plan = in_buckets(problem, {}, cap_mb);
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    plan.decisions[g].algorithm = as_it_is(plan.algorithms, problem.model.gradients[g]);
  }
  return plan;
}

casync::Plan ddp_powersgd(const Problem& problem) {
  casync::Plan plan = in_buckets(problem, {});
  plan.bulk_groups.clear();
  plan.algorithms.push_back(algorithm(powersgd_of(problem)));
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    const models::Gradient& gradient = problem.model.gradients[g];
    std::int8_t& chosen = plan.decisions[g].algorithm;
    if (problem.nodes > 1 && refusal(problem, gradient, plan.algorithms.front()).empty()) {
      chosen = 0;
    } else {
      chosen = as_it_is(plan.algorithms, gradient);
    }
  }
  for (const std::vector<std::uint32_t>& bucket : ddp_buckets(problem.model)) {
    std::map<std::int8_t, std::vector<std::uint32_t>> groups;
    for (const std::uint32_t g : bucket) groups[plan.decisions[g].algorithm].push_back(g);
    for (auto& [of, members] : groups) {
      if (members.size() > 1) plan.bulk_groups.push_back(std::move(members));
    }
  }
  return plan;
}

casync::Plan ddp_fp16(const Problem& problem) {
  casync::Plan plan = in_buckets(problem, {.algorithm = 0});
  plan.algorithms.push_back(algorithm("fp16"));
  return plan;
}

}  // namespace hipress::planner
