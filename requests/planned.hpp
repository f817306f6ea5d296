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

/// Outcome of one of several rules that make layers.
struct WrapRow {
  std::string rule;
  std::optional<planner::ScheduledPlan> plan;  ///< the chosen one; none: nothing fits
  std::string not_chosen;                      ///< why; empty: it is
};

/// The plans of all schedules that a request compares.
struct ScheduleRows {
  std::vector<planner::ScheduledPlan> plans;  ///< one for each schedule
  std::size_t chosen = 0;                     ///< of `plans`
  std::vector<LeftOutSchedule> left_out;      ///< schedules without a plan
  std::vector<WrapRow> wraps;                 ///< of several rules
};

/// A plan, and what is known of it.
struct Planned {
  PlanRequest request;  ///< with the rule of layers that was chosen
  std::unique_ptr<planner::PreparedRequest> prepared;
  planner::Advice advice;
  std::optional<ScheduleRows> schedules = {};  ///< none: the request compares none, and is of ddp
  std::optional<models::Traced> traced = {};   ///< of the job that the model was made of
  std::optional<planner::BreakEvenPoint> break_even = {};  ///< none: not asked for
  std::vector<std::string> in_words = {};                  ///< the advice; empty: not asked for
  std::string page = {};  ///< HTML, where the request has `report` or `page` (requests/report.hpp)

  /// "takes 12.0 % longer": why this one of the schedules' plans is not the chosen one; none: it
  /// is.
  std::optional<std::string> why_not_chosen(const planner::ScheduledPlan& plan) const;
};

/// "local(steps=100): ranks train alone …", what the plan's schedule gives up; empty: nothing.
std::string gives_up(const planner::ScheduledPlan& plan);

/// Document that --json prints.
io::Document document(const Planned& planned);

}  // namespace hipress::requests
