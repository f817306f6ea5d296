#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "costs/machine_options.hpp"
#include "models/model.hpp"
#include "planner/advice/request.hpp"
#include "plans/plan_file.hpp"
#include "requests/hooks.hpp"
#include "requests/record.hpp"
#include "runtime/links.hpp"
#include "sim/forecast.hpp"
#include "transport/endpoint.hpp"

/// Plans of jobs that plan themselves: their ranks measure the links, rank 0 plans, and all get the
/// same two plans, with compression and without.
///
///   const requests::AutomaticRequest request{.model = model, .profile = "profile.yaml"};
///   const requests::AutomaticChoice choice = requests::choose(*endpoint, request, hooks);
///   const plans::ResolvedPlan plan = resolve(choice.taken(), request, ranks);
namespace hipress::requests {

/// Request of a job that plans itself, the same on all ranks.
struct AutomaticRequest {
  std::shared_ptr<const models::Model> model;
  std::string profile = {};                 ///< empty: cached_profile() of rank 0's machine
  std::string algorithms = planner::kSafe;  ///< algorithms of plans, separated by commas
  std::string topology = "BEST";
  std::string network = "fair";
  double timeout_s = 30;
  unsigned jobs = planner::default_jobs();  ///< threads that plan
};

/// One of the two plans.
struct AutomaticPlan {
  std::string yaml;  ///< text of a plan file
  std::string topology;
  std::string what;  ///< in words: "int8block for 7 of 8 gradients", "uncompressed (ddp)"
  double iteration_s = 0;
  sim::Interval interval = {};
};

/// Result of choose(), the same on all ranks.
struct AutomaticChoice {
  runtime::Links links;
  std::string machines;  ///< machines that the plans are for, in one line
  double planning_s = 0;
  AutomaticPlan plain = {};  ///< the fastest without compression
  /// The fastest with compression; none if the profile has costs of no algorithm.
  std::optional<AutomaticPlan> planned = {};
  /// Predicted speedup of `planned` over `plain`, with its 10–90 % interval. 1 without `planned`.
  double gain = 1, gain_p10 = 1, gain_p90 = 1;

  /// True if the whole interval of the speedup is above 1.
  bool is_worth() const { return planned.has_value() && gain > 1 && gain_p10 > 1; }
  const AutomaticPlan& taken() const { return is_worth() ? *planned : plain; }
  /// The prediction in words: "int8block for 7 of 8 gradients is 3.1 times (2.9 to 3.3) as fast as
  /// uncompressed (ddp): 12ms instead of 37ms".
  std::string prediction() const;
};

/// Measures the links, plans on rank 0, and returns the plans. Collective, between iterations; with
/// one rank, there is nothing to choose, and it throws io::InputError. Throws io::InputError on
/// every rank if rank 0 cannot plan, transport::PeerError if a rank is lost. Warnings and notes of
/// the planner are left out.
AutomaticChoice choose(transport::Endpoint& endpoint, const AutomaticRequest& request,
                       const Hooks& hooks);

/// Resolves a plan that was made for the request, on `ranks` ranks.
plans::ResolvedPlan resolve(const AutomaticPlan& plan, const AutomaticRequest& request,
                            std::uint32_t ranks);

/// Links in words: "97.01 Mbit/s, 117us".
std::string describe(const runtime::Links& links);

}  // namespace hipress::requests
