#pragma once

#include <optional>
#include <string>

#include "plans/plan_file.hpp"

namespace hipress::plans {

/// Command-line options that change a plan, as text; empty or unset: not given.
struct PlanOptions {
  std::string bulk_threshold = {}, bulk_wait = {}, bulk_limit = {};
  std::string batch_threshold = {}, batch_wait = {}, batch_limit = {};
  std::optional<double> density = {};
  std::string shards_by = {};
  bool raw_allreduce = false;
  bool no_pipelining = false, no_bulk = false, no_selection = false;
};

/// Applies the options to a plan. Throws InputError that names the field for a value without unit,
/// a negative value, or options that contradict each other.
void apply(const PlanOptions& options, const PlanContext& context, ResolvedPlan& plan);

/// Throws InputError if `shards_by` is given and the schedule is not sharded.
void require_shards(const PlanOptions& options, const casync::Schedule& schedule);

/// Compresses every gradient with K = N, whatever the plan decided. Takes the algorithm that
/// compresses most elements in the plan, or that of the context if the plan compresses nothing.
void compress_everything(const PlanContext& context, ResolvedPlan& plan);

/// The algorithm's text with its density replaced.
std::string with_density(const std::string& algorithm, double density);

/// Sets the density of every sparse gradient of the plan. Above `plan.dense->above`, `plan.dense`
/// sends them. Throws InputError unless 0 < density <= 1, and for a plan without sparse gradients.
void set_density(double density, const PlanContext& context, ResolvedPlan& plan);

}  // namespace hipress::plans
