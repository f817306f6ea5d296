#pragma once

#include <string>
#include <vector>

#include "requests/planned.hpp"

/// Page for a plan that `report` writes (report/page.hpp).
namespace hipress::requests {

/// Largest size of a page, in bytes, so that it can be mailed.
inline constexpr std::size_t kMostPageBytes = 300'000;

/// Makes the page of a plan. Its numbers are those of document(), or of the plan's simulation as
/// `hipress-sim` prints it. `said`: the request's warnings and notes. For large models and long
/// texts, the timeline is coarsened, the table keeps the largest gradients, and texts are cut,
/// until the page has at most kMostPageBytes.
std::string report_page(const Planned& planned, const std::vector<std::string>& said);

}  // namespace hipress::requests
