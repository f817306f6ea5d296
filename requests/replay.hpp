#pragma once

#include <optional>
#include <string>

#include "io/document.hpp"
#include "replay/report.hpp"
#include "requests/hooks.hpp"
#include "requests/record.hpp"
#include "requests/replay_job.hpp"
#include "traces/timeline.hpp"

/// The answer to the request "replay".
namespace hipress::requests {

/// Result of a replay in this process. All ranks have the same numbers; only the rank that reports
/// has predictions.
struct Replayed {
  bool reports = true;  ///< this process's result is the job's
  ReplayJob job;
  replay::Report report;
  std::optional<std::string> predicted_for = {};  ///< none: no prediction
  traces::Timeline measured;
  std::optional<traces::Timeline> predicted = {};
};

/// Replays the plan in this process: as one rank of a job if a launcher started it, else with all
/// ranks as threads. Writes no trace. Throws Interrupted, and as replay::replay() does.
Replayed replay(const ReplayRequest& request, const Hooks& hooks);

/// Writes the trace if one is named and this process reports. Call it last: a failed write must not
/// cost the measurements.
void write_trace(const ReplayRequest& request, const Replayed& replayed);

/// Document that --json prints.
io::Document document(const Replayed& replayed);
void fill(Record& record, const Replayed& replayed);

io::Document answer(const ReplayRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
