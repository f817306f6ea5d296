#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/advice/advice.hpp"
#include "planner/analysis/sharded_verdict.hpp"
#include "planner/schedules/required_bandwidth.hpp"
#include "planner/schedules/scheduled.hpp"
#include "requests/asked_schedules.hpp"
#include "requests/hooks.hpp"
#include "requests/plan_request.hpp"

/// What the request "plan" asks about schedules: which one, and how much bandwidth each needs.
namespace hipress::requests {

/// Rows of one schedule and algorithm, one for each utilisation.
struct BandwidthTable {
  std::string schedule;  ///< as it was asked for; of a set, as Schedule::text() says it
  std::string algorithm, topology;
  std::vector<planner::RequiredBandwidth> rows;
};

/// What becomes of a job whose layers are made by one of several rules.
struct WrapRow {
  std::string rule;
  std::optional<planner::ScheduledPlan> plan;  ///< the chosen one; none: nothing fits
  std::string not_chosen;                      ///< why; empty: it is
};

struct ScheduleAnswer {
  ScheduleAnswer(const PlanRequest& asked, const Hooks& hooks);

  const PlanRequest request;
  const planner::PreparedRequest prepared;
  std::vector<planner::ScheduledPlan> plans;  ///< one for each schedule that was asked for
  std::size_t chosen = 0;                     ///< of `plans`
  /// Beside plans of which one at least is of a sharded schedule: what others do with such a job.
  std::vector<planner::ShardedBaseline> baselines;
  planner::Verdict verdict;                ///< on the chosen plan, where there are baselines
  std::vector<WrapRow> wraps;              ///< of several rules, of which `request.wrap` is chosen
  std::vector<LeftOutSchedule> left_out;   ///< of BEST
  std::vector<BandwidthTable> bandwidths;  ///< of required_bandwidth, instead
};

/// Compares the schedules, and writes the plan of the one that is chosen if an output is named
/// (YAML alone says schedules); or finds the bandwidths. io::InputError for what cannot be done.
std::unique_ptr<const ScheduleAnswer> answer_of_schedules(const PlanRequest& request,
                                                          const Hooks& hooks);

/// What --json prints.
io::Document document(const ScheduleAnswer& answer);

/// "local(steps=100): ranks train alone …", what the schedule gives up; empty: nothing.
std::string gives_up(const planner::ScheduledPlan& plan);

/// "takes 12.0 % longer": why this one of the answer's plans is not the chosen one; none: it is.
std::optional<std::string> why_not_chosen(const ScheduleAnswer& answer,
                                          const planner::ScheduledPlan& plan);

/// InputError for `utilization`, `optimizer`, `shards_by` and others without what they are of.
void refuse_unused(const PlanRequest& request);

}  // namespace hipress::requests
