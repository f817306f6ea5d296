#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costs/machine_options.hpp"
#include "replay/drift.hpp"
#include "replay/prediction.hpp"
#include "replay/report.hpp"
#include "requests/replay_job.hpp"
#include "sim/simulator.hpp"

namespace hipress::requests {

/// Inputs of a prediction of the replay.
struct ReplayForecast {
  costs::LoadedMachines machines;
  replay::PredictionOptions options;
};

/// Prepares the prediction; nullopt without a profile. Throws io::InputError, before any rank runs,
/// if no prediction is possible.
std::optional<ReplayForecast> prepare_forecast(const ReplayRequest& request, const ReplayJob& job);

/// Results of all replays in this process.
struct ReplayOutcome {
  replay::ReplayResult replayed;           ///< the last replay
  std::optional<replay::Watched> watched;  ///< none: the profile has no probes
  std::vector<std::string> machines;       ///< machine of each rank
  bool threads = true;                     ///< false: processes
};

/// Adds the basis of the prediction to `report`, and caveats about comparing it with the
/// measurement. Returns the prediction.
sim::Result report_prediction(const ReplayRequest& request, const ReplayJob& job,
                              const ReplayForecast& forecast, const ReplayOutcome& outcome,
                              replay::Report& report);

}  // namespace hipress::requests
