#pragma once

#include <string>
#include <vector>

#include "requests/planned.hpp"

/// HTML page for a plan; `report` names its file (report/page.hpp).
namespace hipress::requests {

/// Largest size of a page, in bytes: small enough to be mailed.
inline constexpr std::size_t kMostPageBytes = 300'000;

/// Makes the page of a plan. Its numbers are those of document(), and those that `hipress-sim`
/// prints for the plan. `said`: the request's warnings and notes. If the page would exceed
/// kMostPageBytes, its timeline is coarsened, its table keeps only the largest gradients, and its
/// texts are cut.
std::string report_page(const Planned& planned, const std::vector<std::string>& said);

}  // namespace hipress::requests
