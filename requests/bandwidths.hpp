#pragma once

#include <memory>
#include <string>
#include <vector>

#include "planner/advice/advice.hpp"
#include "planner/schedules/required_bandwidth.hpp"
#include "requests/hooks.hpp"
#include "requests/plan_request.hpp"

/// The request "plan" with `required_bandwidth`: bandwidths for given shares of computation.
namespace hipress::requests {

/// Table for one schedule and algorithm, with one row per requested share of computation.
struct BandwidthTable {
  std::string schedule;  ///< as given; for members of a set, Schedule::text()
  std::string algorithm, topology;
  std::vector<planner::RequiredBandwidth> rows;
};

struct Bandwidths {
  std::unique_ptr<const planner::PreparedRequest> prepared;
  std::vector<BandwidthTable> tables;
};

/// Makes a table for each schedule and algorithm. Uncompressed gradients are averaged by the
/// library's all-reduce unless the request names a topology. A schedule that does not fit into
/// `gpu_memory` has rows without a bandwidth. Throws io::InputError for impossible requests.
Bandwidths find_bandwidths(const PlanRequest& request, const Hooks& hooks);

/// Document that --json prints.
io::Document document(const Bandwidths& found);

}  // namespace hipress::requests
