#pragma once

#include <string>
#include <string_view>

#include "requests/plan.hpp"

namespace CLI {
class App;
}

/// Command line of hipress-plan.
namespace hipress::planner {

inline constexpr std::string_view kDefaultOutput = "SeCoPaPlan.txt";
/// Default output for a machine. SeCoPa's text cannot express the levels and groups of its plans.
inline constexpr std::string_view kMachineOutput = "plan.yaml";

/// The request, and options that say how to print its answer.
struct Options {
  Options() { request.output = kDefaultOutput; }

  requests::PlanRequest request;
  bool json = false;
  bool baselines = false;
  bool list_passes = false;

  /// True if all times are printed. False if the tool is used like SeCoPa.py, which it replaces:
  /// then it prints only the verdict.
  bool prints_times() const {
    const Request& asked = request.request;
    return json || baselines || request.yaml() || !asked.machines.profile.empty() ||
           asked.machines.names_cluster() || asked.analysis.any();
  }
  /// Chooses kMachineOutput if a machine is given and the command line names no output.
  void choose_output() {
    if (!request.request.machines.names_machine() || request.is_given("output")) return;
    request.output = kMachineOutput;
  }
  /// Name of the plan, as the report prints it.
  const std::string& plan_name() const {
    const std::string& plan = request.request.analysis.plan;
    return plan.empty() ? request.output : plan;
  }
};

void declare_options(CLI::App& app, Options& options);

}  // namespace hipress::planner
