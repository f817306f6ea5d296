#pragma once

#include <cstdint>
#include <string>

#include "costs/machine_options.hpp"
#include "models/time_options.hpp"
#include "planner/baselines/named_plans.hpp"
#include "plans/plan_options.hpp"
#include "plans/trust.hpp"
#include "sim/effect.hpp"
#include "sim/scenario.hpp"

namespace CLI {
class App;
}

namespace hipress::sim {

/// The command line of hipress-sim, without its subcommands.
struct CommandLine {
  std::string input;
  std::string plan;
  std::int64_t evaluations = planner::kEvaluations;
  std::string topology = "PS";
  std::uint32_t nodes = 0;  ///< 0: as the cluster file says
  std::string algorithm = "onebit";
  costs::MachineOptions machines;
  models::TimeOptions times;
  std::string network = "fair";
  std::string trace;
  std::string chakra;  ///< folder; empty: none is written
  std::string fold = "auto";
  plans::PlanOptions plan_options;
  plans::Trust trust;
  int steady = 0;  ///< iterations back to back; 0: one, with a barrier at its end
  std::string transfer_order = "ready";
  std::string jitter;  ///< empty: none
  std::uint64_t seed = 0;
  std::uint32_t replicas = 1;
  unsigned jobs = 0;  ///< 0: one per usable core
  bool sensitivity = false;
  bool explains_interval = false;
  bool json = false;
  Given given;  ///< what the command line named
};

/// Adds the options to the command line.
void declare(CLI::App& app, CommandLine& line);

}  // namespace hipress::sim
