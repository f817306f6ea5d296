#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "casync/schedule.hpp"
#include "planner/problem/problem.hpp"
#include "requests/plan_request.hpp"

/// Which schedules the field `schedule` of a request asks for.
namespace hipress::requests {

/// Stands for data-parallel training, and for shards over all GPUs and over a host's, as PyTorch
/// has them.
inline constexpr std::string_view kBestSchedule = "BEST";

struct AskedSchedule {
  casync::Schedule schedule;
  std::string text;  ///< as it was asked for; of a set, as Schedule::text() says it
};

/// A schedule of BEST for which no plan is searched, since what it keeps takes too much memory.
struct LeftOutSchedule {
  std::string schedule, reason;
};

struct AskedSchedules {
  std::vector<AskedSchedule> schedules;  ///< at least one
  std::vector<LeftOutSchedule> left_out;
};

/// Of a text that stands for several, those that fit the model and the nodes, and of BEST those
/// that fit into `gpu_memory`. io::InputError where none is left.
AskedSchedules asked_schedules(const PlanRequest& request, const planner::Problem& problem);

bool asks_for_best(const PlanRequest& request);

/// Bytes of each GPU; none: not given. io::InputError for what is no size.
std::optional<std::int64_t> memory_limit(const PlanRequest& request);

}  // namespace hipress::requests
