#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "casync/schedule.hpp"
#include "planner/problem/problem.hpp"
#include "requests/plan_request.hpp"

/// Schedules that the field `schedule` of a request names.
namespace hipress::requests {

/// Value of `schedule` that stands for the usual schedules of PyTorch: data-parallel training, and
/// sharding over all GPUs or over each host's GPUs.
inline constexpr std::string_view kBestSchedule = "BEST";

struct AskedSchedule {
  casync::Schedule schedule;
  std::string text;  ///< as given; for members of a set, Schedule::text()
};

/// A schedule of BEST that is not searched because its state takes too much memory.
struct LeftOutSchedule {
  std::string schedule, reason;
};

struct AskedSchedules {
  std::vector<AskedSchedule> schedules;  ///< never empty
  std::vector<LeftOutSchedule> left_out;
};

/// Expands the schedules of a request. A text with several values of a parameter stands for several
/// schedules: those that do not fit the model and the nodes are dropped. BEST also drops schedules
/// that do not fit into `gpu_memory`. Throws io::InputError if no schedule remains.
AskedSchedules asked_schedules(const PlanRequest& request, const planner::Problem& problem);

bool asks_for_best(const PlanRequest& request);

/// Memory of each GPU, in bytes; nullopt if the request does not give it. Throws io::InputError for
/// an invalid size.
std::optional<std::int64_t> memory_limit(const PlanRequest& request);

}  // namespace hipress::requests
