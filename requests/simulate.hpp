#pragma once

#include <cstdint>
#include <string>

#include "costs/machine_options.hpp"
#include "models/time_options.hpp"
#include "planner/baselines/named_plans.hpp"
#include "plans/plan_options.hpp"
#include "plans/trust.hpp"
#include "requests/field.hpp"
#include "requests/hooks.hpp"
#include "requests/prediction.hpp"
#include "sim/scenario.hpp"

/// The request "simulate", which hipress-sim makes of its command line.
namespace hipress::requests {

struct SimulateRequest {
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
  int steady = 0;        ///< iterations back to back; 0: one, with a barrier at its end
  std::string schedule;  ///< empty: as a plan YAML says, else ddp
  std::string wrap;      ///< as models::wrap() takes it; empty: layers as the model says
  std::string transfer_order = "ready";
  std::string jitter;  ///< empty: none
  std::uint64_t seed = 0;
  std::uint32_t replicas = 1;
  unsigned jobs = 0;  ///< 0: one per usable core
  bool sensitivity = false;
  bool explains_interval = false;
  GivenFields given;
};

struct Effect;

/// Its fields; they point into the request. `effect` tells which have one; null: nothing has been
/// simulated yet.
Fields fields(SimulateRequest& request, Effect* effect = nullptr);

/// What was simulated, and what came of it.
struct Simulated {
  sim::Scenario scenario;
  Prediction prediction;
};

/// Reads what the request names, and simulates it. io::InputError for what makes no sense, and with
/// what would make it smaller if the graph does not fit in memory.
Simulated simulate(const SimulateRequest& request, const Hooks& hooks);

/// What --json prints.
io::Document document(const Simulated& simulated);

/// Writes the files that the request names: last, so that a full disk costs nothing but them.
void write_files(const SimulateRequest& request, Simulated& simulated);

/// Warns of costs that nobody measured, and of what was given and has no effect.
void warn_of(const SimulateRequest& request, const Simulated& simulated, const Hooks& hooks);

/// Answers the request.
io::Document answer(const SimulateRequest& request, const Hooks& hooks);

/// The machines that the request names.
costs::LoadedMachines load_machines(const SimulateRequest& request);
/// What the request describes; says what was assumed. io::InputError for what makes no sense.
sim::Scenario load_scenario(const SimulateRequest& request, const Hooks& hooks);
/// Simulates the scenario, and whatever else the request asks for.
Prediction predict(const sim::Scenario& scenario, const SimulateRequest& request,
                   const Hooks& hooks);

}  // namespace hipress::requests
