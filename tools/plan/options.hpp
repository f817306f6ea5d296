#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/yaml.hpp"
#include "planner/advice/request.hpp"

namespace CLI {
class App;
}

/// The command line of hipress-plan.
namespace hipress::planner {

/// What --job broadcast asks for.
struct BroadcastOptions {
  std::string bytes = {};  ///< of one tensor; empty: --input says what is sent
  std::optional<std::string> dtype = {};
  std::optional<std::uint32_t> root = {};
  std::optional<std::int32_t> chunks = {};
  bool lossless = false;
};

inline constexpr std::string_view kDefaultOutput = "SeCoPaPlan.txt";

struct Options {
  Request request;
  std::string job = "mean";
  BroadcastOptions broadcast;
  bool input_given = false;
  bool algorithms_given = false;
  std::string output{kDefaultOutput};
  bool json = false;
  bool baselines = false;
  bool list_passes = false;

  bool yaml() const { return io::is_yaml_name(output); }
  PlanForm form() const { return yaml() ? PlanForm::kYaml : PlanForm::kText; }
  /// Whether all times are printed; the drop-in for SeCoPa.py prints the verdict alone.
  bool prints_times() const {
    return json || baselines || yaml() || !request.machines.profile.empty() ||
           request.machines.names_cluster() || request.analysis.any();
  }
  /// What the report calls the plan.
  const std::string& plan_name() const {
    return request.analysis.plan.empty() ? output : request.analysis.plan;
  }
};

/// Adds the options to the command line.
void declare_options(CLI::App& app, Options& options);

}  // namespace hipress::planner
