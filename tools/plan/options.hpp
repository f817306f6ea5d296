#pragma once

#include <string>
#include <string_view>

#include "requests/plan.hpp"

namespace CLI {
class App;
}

/// The command line of hipress-plan.
namespace hipress::planner {

inline constexpr std::string_view kDefaultOutput = "SeCoPaPlan.txt";

/// The request, and how its answer is printed.
struct Options {
  Options() { request.output = kDefaultOutput; }

  requests::PlanRequest request;
  std::string hosts;  ///< as parse_hosts() takes it; one number is the request's
  bool json = false;
  bool baselines = false;
  bool list_passes = false;

  /// Whether all times are printed; the drop-in for SeCoPa.py prints the verdict alone.
  bool prints_times() const {
    const Request& asked = request.request;
    return json || baselines || request.yaml() || !asked.machines.profile.empty() ||
           asked.machines.names_cluster() || asked.analysis.any();
  }
  /// What the report calls the plan.
  const std::string& plan_name() const {
    const std::string& plan = request.request.analysis.plan;
    return plan.empty() ? request.output : plan;
  }
};

/// Adds the options to the command line.
void declare_options(CLI::App& app, Options& options);

}  // namespace hipress::planner
