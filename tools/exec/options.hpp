#pragma once

#include <cstdint>
#include <string>

#include "costs/machine_options.hpp"
#include "models/time_options.hpp"
#include "plans/plan_options.hpp"
#include "plans/trust.hpp"
#include "replay/replay.hpp"
#include "tools/options/job.hpp"
#include "transport/endpoint.hpp"

namespace CLI {
class App;
}

namespace hipress::replay {

/// The command line.
struct CommandLine {
  std::string input, plan = "none", topology = "PS", algorithm = "onebit", device = "cpu";
  std::uint32_t nnodes = 0;  ///< 0: the launcher's
  ReplayOptions replay;
  std::string backward = "idle";
  std::string schedule;  ///< empty: as a plan YAML says, else ddp
  std::string transport{transport::kDefaultTransport};
  tools::JobOptions job{.name = "hipress"};
  costs::MachineOptions machines;  ///< to predict for
  models::TimeOptions times;
  std::string network = "fair";
  std::string gradients;  ///< folder; empty: they are made up
  std::string trace;
  plans::PlanOptions plan_options;
  plans::Trust trust;
  int again = 3;
  bool reprobe = false;
  bool topology_given = false;
  bool timeout_given = false;
  bool json = false;
  bool verbose = false;
};

/// Adds the options to the command line.
void declare(CLI::App& app, CommandLine& line);

}  // namespace hipress::replay
