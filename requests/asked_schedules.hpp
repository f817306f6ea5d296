#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "casync/schedule.hpp"
#include "planner/problem/problem.hpp"
#include "requests/plan_request.hpp"

/// Schedules named by the field `schedule` of a request.
namespace hipress::requests {

/// Text that stands for data-parallel training, and for sharding over all GPUs and over a host's
/// GPUs, as in PyTorch.
inline constexpr std::string_view kBestSchedule = "BEST";

struct AskedSchedule {
  casync::Schedule schedule;
  std::string text;  ///< as given; for members of a set, Schedule::text()
};

/// A schedule of BEST that is not searched, since its state takes too much memory.
struct LeftOutSchedule {
  std::string schedule, reason;
};

struct AskedSchedules {
  std::vector<AskedSchedule> schedules;  ///< never empty
  std::vector<LeftOutSchedule> left_out;
};

/// Expands the schedules of a request. Of a text that stands for several, only those that fit the
/// model and the nodes are kept; of BEST, those that fit into `gpu_memory`. Throws io::InputError
/// if none is left.
AskedSchedules asked_schedules(const PlanRequest& request, const planner::Problem& problem);

bool asks_for_best(const PlanRequest& request);

/// Memory of each GPU in bytes; none: not given. Throws io::InputError for an invalid size.
std::optional<std::int64_t> memory_limit(const PlanRequest& request);

}  // namespace hipress::requests
