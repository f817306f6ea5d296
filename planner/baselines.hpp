#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "planner/evaluation.hpp"
#include "planner/search.hpp"

namespace hipress::planner {

/// A plan that needs no search, which every searched plan is compared with. Adding one is one row.
struct BaselineRow {
  std::string_view name;
  std::string_view help;
  casync::Plan (*make)(const Problem& problem);
};

/// none, fp16, all, threshold_262144, secopa.
std::span<const BaselineRow> baselines();

struct BaselineTime {
  std::string_view name;
  double iteration_s = 0;
};

/// The simulated iteration time of every baseline, in the order of baselines().
std::vector<BaselineTime> simulate_baselines(const Problem& problem, const Machines& machines);

}  // namespace hipress::planner
