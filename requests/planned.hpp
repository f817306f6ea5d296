#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/traced.hpp"
#include "planner/advice/advice.hpp"
#include "planner/advice/break_even_point.hpp"
#include "planner/schedules/scheduled.hpp"
#include "requests/asked_schedules.hpp"
#include "requests/hooks.hpp"
#include "requests/plan_request.hpp"

namespace hipress::requests {

/// Result of one rule for layers, if several are compared.
struct WrapRow {
  std::string rule;
  std::optional<planner::ScheduledPlan> plan;  ///< chosen plan; none: nothing fits
  std::string not_chosen;                      ///< reason; empty: chosen
};

/// Plans of all schedules that a request compares.
struct ScheduleRows {
  std::vector<planner::ScheduledPlan> plans;  ///< one per schedule
  std::size_t chosen = 0;                     ///< index into `plans`
  std::vector<LeftOutSchedule> left_out;      ///< schedules without a plan
  std::vector<WrapRow> wraps;                 ///< one per rule, if several are compared
};

/// A plan and the results about it.
struct Planned {
  PlanRequest request;  ///< request with the chosen rule for layers
  std::unique_ptr<planner::PreparedRequest> prepared;
  planner::Advice advice;
  std::optional<ScheduleRows> schedules = {};  ///< none: only ddp, without a comparison
  std::optional<models::Traced> traced = {};   ///< timings of the job that the model was made from
  std::optional<planner::BreakEvenPoint> break_even = {};  ///< none: not requested
  std::vector<std::string> in_words = {};                  ///< advice; empty: not requested
  std::string page = {};  ///< HTML, with `report` or `page` (requests/report.hpp)

  /// Reason why `plan` was not chosen, such as "takes 12.0 % longer". nullopt if it was chosen.
  std::optional<std::string> why_not_chosen(const planner::ScheduledPlan& plan) const;
};

/// Sentence about what the plan's schedule gives up, such as "local(steps=100): ranks train alone
/// …". Empty if it gives up nothing.
std::string gives_up(const planner::ScheduledPlan& plan);

/// Throughput under the plan; empty if the model has no batch, or the plan was not simulated.
std::optional<models::Throughput> throughput_of(const Planned& planned);

/// Document that --json prints.
io::Document document(const Planned& planned);

}  // namespace hipress::requests
