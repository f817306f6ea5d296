#pragma once

#include <optional>

#include "costs/machine_options.hpp"
#include "sim/simulator.hpp"
#include "tools/exec/job.hpp"
#include "tools/exec/prediction.hpp"
#include "tools/exec/replays.hpp"
#include "tools/exec/report.hpp"

namespace hipress::replay {

/// What replays are predicted with.
struct Forecast {
  costs::LoadedMachines machines;
  PredictionOptions options;
};

/// None without a profile. io::InputError for what makes no prediction, before any rank is run.
std::optional<Forecast> prepare_forecast(const CommandLine& line, const Job& job);

/// Says on one rank what was assumed of the inputs.
void say(const Job& job, const std::optional<Forecast>& forecast);

/// Whether the machine is watched while it replays.
Watching watching_of(const CommandLine& line, const std::optional<Forecast>& forecast);

/// Predicts what was replayed, and says what a reader must know before comparing the two. Returns
/// the prediction.
sim::Result report_prediction(const CommandLine& line, const Job& job, const Forecast& forecast,
                              const Outcome& outcome, Report& report);

}  // namespace hipress::replay
