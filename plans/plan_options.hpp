#pragma once

#include <optional>
#include <string>

#include "plans/plan_file.hpp"

namespace hipress::plans {

/// What the command lines of several tools can change of a plan, as it was given; empty: not given.
struct PlanOptions {
  std::string bulk_threshold = {}, bulk_wait = {}, bulk_limit = {};
  std::string batch_threshold = {}, batch_wait = {}, batch_limit = {};
  std::optional<double> density = {};
  std::string shards_by = {};
  bool raw_allreduce = false;
  bool no_pipelining = false, no_bulk = false, no_selection = false;
};

/// Changes a plan as the options say. InputError that names the field for a value without unit, a
/// negative one, or options that contradict each other.
void apply(const PlanOptions& options, const PlanContext& context, ResolvedPlan& plan);

/// InputError for `shards_by` of a plan without shards, whose schedule is known by now.
void require_shards(const PlanOptions& options, const casync::Schedule& schedule);

/// Without selection: every gradient is compressed, K = N, with the algorithm that compresses most
/// elements in the plan, or the context's if it compresses nothing.
void compress_everything(const PlanContext& context, ResolvedPlan& plan);

/// An algorithm's text with another density.
std::string with_density(const std::string& algorithm, double density);

/// Sends every sparse gradient of the plan at this density; if the density is above
/// `plan.dense->above`, sends them as `plan.dense` says. InputError unless 0 < density <= 1, and
/// for a plan without sparse gradients.
void set_density(double density, const PlanContext& context, ResolvedPlan& plan);

}  // namespace hipress::plans
