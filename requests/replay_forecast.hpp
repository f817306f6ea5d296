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

/// Input for predictions of replays.
struct ReplayForecast {
  costs::LoadedMachines machines;
  replay::PredictionOptions options;
};

/// Prepares the prediction; none without a profile. Throws io::InputError, before any rank runs, if
/// no prediction is possible.
std::optional<ReplayForecast> prepare_forecast(const ReplayRequest& request, const ReplayJob& job);

/// Results of all replays in this process.
struct ReplayOutcome {
  replay::ReplayResult replayed;           ///< the last replay
  std::optional<replay::Watched> watched;  ///< none: the profile has no probes
  std::vector<std::string> machines;       ///< by rank
  bool threads = true;                     ///< false: processes
};

/// Reports the basis of the prediction, and caveats for comparing it with the measurement. Returns
/// the prediction.
sim::Result report_prediction(const ReplayRequest& request, const ReplayJob& job,
                              const ReplayForecast& forecast, const ReplayOutcome& outcome,
                              replay::Report& report);

}  // namespace hipress::requests
