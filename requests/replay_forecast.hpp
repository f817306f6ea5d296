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

/// What replays are predicted with.
struct ReplayForecast {
  costs::LoadedMachines machines;
  replay::PredictionOptions options;
};

/// None without a profile. io::InputError for what makes no prediction, before any rank is run.
std::optional<ReplayForecast> prepare_forecast(const ReplayRequest& request, const ReplayJob& job);

/// What came of all replays in this process.
struct ReplayOutcome {
  replay::ReplayResult replayed;           ///< the last
  std::optional<replay::Watched> watched;  ///< none: the profile has no probes
  std::vector<std::string> machines;       ///< by rank
  bool threads = true;                     ///< or processes
};

/// Says what is predicted, and what a reader must know before comparing it with what was measured.
/// Returns the prediction.
sim::Result report_prediction(const ReplayRequest& request, const ReplayJob& job,
                              const ReplayForecast& forecast, const ReplayOutcome& outcome,
                              replay::Report& report);

}  // namespace hipress::requests
