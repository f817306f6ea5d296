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

/// The request "simulate"; hipress-sim makes it from its command line.
namespace hipress::requests {

struct SimulateRequest {
  std::string input;
  std::string plan;
  std::int64_t evaluations = planner::kEvaluations;
  std::string topology = "PS";
  std::uint32_t nodes = 0;  ///< 0: the cluster file's number
  std::string algorithm = "onebit";
  costs::MachineOptions machines;
  models::TimeOptions times;
  std::string network = "fair";
  std::string trace;
  std::string chakra;  ///< folder; empty: no export
  std::string fold = "auto";
  plans::PlanOptions plan_options;
  plans::Trust trust;
  int steady = 0;        ///< back-to-back iterations; 0: one, with a barrier at its end
  std::string schedule;  ///< empty: the plan YAML's, else ddp
  std::string wrap;      ///< rule for models::wrap(); empty: the model's own layers
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

/// Fields of the request; they point into it. `effect` decides which of them have an effect. It is
/// null until something has been simulated.
Fields fields(SimulateRequest& request, Effect* effect = nullptr);

struct Simulated {
  sim::Scenario scenario;
  Prediction prediction;
};

/// Reads the request's inputs, and simulates. Throws io::InputError for invalid requests, and if
/// the graph does not fit into memory; the error then says how to make it smaller.
Simulated simulate(const SimulateRequest& request, const Hooks& hooks);

/// Document that --json prints.
io::Document document(const Simulated& simulated);

/// Writes the files that the request names. Call it last, so that a full disk costs nothing else.
void write_files(const SimulateRequest& request, Simulated& simulated);

/// Warns about assumed costs, and about fields without effect.
void warn_of(const SimulateRequest& request, const Simulated& simulated, const Hooks& hooks);

io::Document answer(const SimulateRequest& request, const Hooks& hooks);

costs::LoadedMachines load_machines(const SimulateRequest& request);
/// Loads the scenario that the request describes, and reports assumptions. Throws io::InputError
/// for invalid requests.
sim::Scenario load_scenario(const SimulateRequest& request, const Hooks& hooks);
/// Simulates the scenario, and runs the other requested analyses.
Prediction predict(const sim::Scenario& scenario, const SimulateRequest& request,
                   const Hooks& hooks);

}  // namespace hipress::requests
