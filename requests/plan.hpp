#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/traced.hpp"
#include "planner/advice/advice.hpp"
#include "planner/advice/break_even_point.hpp"
#include "requests/hooks.hpp"
#include "requests/plan_request.hpp"

/// What the request "plan" is answered with.
namespace hipress::requests {

/// A plan for averaging gradients, and what is known of it.
struct Planned {
  Planned(const PlanRequest& asked, const Hooks& hooks);

  const PlanRequest request;
  const planner::PreparedRequest prepared;
  planner::Advice advice;
  std::optional<models::Traced> traced;  ///< of the job that the model was made of
  std::optional<planner::BreakEvenPoint> break_even = {};  ///< none: not asked for
  std::vector<std::string> in_words = {};                  ///< the advice; empty: not asked for
  std::string page = {};  ///< HTML, where the request has `report` or `page` (requests/report.hpp)
};

/// Plans, and writes the plan if an output is named, and its page if a report is. io::InputError,
/// before any search, for what cannot be done or written.
std::unique_ptr<const Planned> plan(const PlanRequest& request, const Hooks& hooks);

/// What --json prints.
io::Document document(const Planned& planned);

/// Answers the request, of whichever job.
io::Document answer(const PlanRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
