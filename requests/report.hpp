#pragma once

#include <string>
#include <vector>

#include "requests/planned.hpp"

/// The page that `report` writes of a plan (report/page.hpp), and what is on it.
namespace hipress::requests {

/// The largest page, so that mail takes it.
inline constexpr std::size_t kMostPageBytes = 300'000;

/// The page of a plan that was made. Its numbers are those of document(), or of the plan's
/// simulation as `hipress-sim` prints it. `said`: the request's warnings and notes. For large
/// models and long texts, the timeline gets coarser, the table keeps only the largest gradients,
/// and texts are cut, until the page is no longer than kMostPageBytes.
std::string report_page(const Planned& planned, const std::vector<std::string>& said);

}  // namespace hipress::requests
