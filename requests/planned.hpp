#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/traced.hpp"
#include "planner/advice/advice.hpp"
#include "planner/advice/break_even_point.hpp"
#include "requests/hooks.hpp"
#include "requests/plan_request.hpp"

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

/// What --json prints.
io::Document document(const Planned& planned);

}  // namespace hipress::requests
