#include "plans/plan_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::plans {
namespace {

/// Options of bulk groups or of batches, as text.
struct AggregationTexts {
  std::string_view name;  ///< "bulk"
  const std::string& threshold;
  const std::string& wait;
  const std::string& limit;
};

void apply_aggregation(const AggregationTexts& texts, casync::Aggregation& aggregation) {
  const auto option = [&](std::string_view what) {
    return fmt::format("`{}_{}`", texts.name, what);
  };
  if (!texts.threshold.empty()) {
    aggregation.threshold_bytes = io::parse_size(texts.threshold, option("threshold"));
  }
  if (!texts.wait.empty()) {
    const double wait_s = io::parse_duration(texts.wait, option("wait"));
    if (wait_s > models::kLongestTime_s) {
      throw io::InputError(
          fmt::format("{} must be at most {:g}s, got {}; without it, there is no "
                      "limit",
                      option("wait"), models::kLongestTime_s, io::quote(texts.wait)));
    }
    aggregation.wait = casync::from_seconds(wait_s);
  }
  if (!texts.limit.empty()) {
    aggregation.limit_bytes = io::parse_size(texts.limit, option("limit"));
  }
  const bool bounds = !texts.wait.empty() || !texts.limit.empty();
  if (bounds && aggregation.threshold_bytes == 0) {
    throw io::InputError(fmt::format("{} needs {}, the size below which messages are put together",
                                     option(texts.wait.empty() ? "limit" : "wait"),
                                     option("threshold")));
  }
}

/// Throws InputError for options of bulk groups that contradict `no_bulk`.
void refuse_aggregation(const AggregationTexts& texts) {
  for (const auto& [what, text] :
       {std::pair("threshold", &texts.threshold), std::pair("wait", &texts.wait),
        std::pair("limit", &texts.limit)}) {
    if (text->empty()) continue;
    throw io::InputError(fmt::format("`no_bulk` contradicts `{}_{}`; drop one", texts.name, what));
  }
}

std::string main_algorithm(const PlanContext& context, const casync::Plan& plan) {
  std::vector<std::int64_t> elements(plan.algorithms.size(), 0);
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    const models::Gradient& gradient = context.model.gradients[g];
    if (is_raw(gradient, plan, plan.decisions[g])) continue;
    elements[static_cast<std::size_t>(plan.decisions[g].algorithm)] += gradient.elements;
  }
  const auto most = std::max_element(elements.begin(), elements.end());
  if (most == elements.end() || *most == 0) return context.algorithm;
  return plan.algorithms[static_cast<std::size_t>(most - elements.begin())].name;
}

}  // namespace

void compress_everything(const PlanContext& context, ResolvedPlan& resolved) {
  PlanContext changed = context;
  changed.algorithm = main_algorithm(context, resolved.plan);
  ResolvedPlan all = resolve_plan("all", changed);
  resolved.plan.algorithms = std::move(all.plan.algorithms);
  resolved.plan.decisions = std::move(all.plan.decisions);
  resolved.codecs = std::move(all.codecs);
}

void require_shards(const PlanOptions& options, const casync::Schedule& schedule) {
  if (options.shards_by.empty() || schedule.row().sharded) return;
  throw io::InputError(
      fmt::format("`shards_by` applies to sharded schedules, such as `schedule` fsdp, and this one "
                  "is {}; drop it",
                  schedule.text()));
}

void apply(const PlanOptions& options, const PlanContext& context, ResolvedPlan& resolved) {
  casync::Plan& plan = resolved.plan;
  const AggregationTexts bulk = {"bulk", options.bulk_threshold, options.bulk_wait,
                                 options.bulk_limit};
  const AggregationTexts batch = {"batch", options.batch_threshold, options.batch_wait,
                                  options.batch_limit};
  if (options.no_bulk) {
    refuse_aggregation(bulk);
    refuse_aggregation(batch);
  }
  apply_aggregation(bulk, plan.bulk);
  apply_aggregation(batch, plan.batch);
  if (!options.shards_by.empty()) plan.shards_by = casync::known_shards_by(options.shards_by);
  if (options.raw_allreduce) plan.raw_topology = "allreduce";
  if (options.no_selection) compress_everything(context, resolved);
  if (options.density) set_density(*options.density, context, resolved);
  if (options.no_bulk) {
    plan.bulk = plan.batch = {};
    plan.bulk_groups.clear();
  }
  if (options.no_pipelining) plan.pipelining = false;
}

}  // namespace hipress::plans
