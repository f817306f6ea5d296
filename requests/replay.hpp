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

/// Result of a replay in this process. Numbers are the same on all ranks; predictions are only on
/// the rank that reports.
struct Replayed {
  bool reports = true;  ///< this process's result is the job's
  ReplayJob job;
  replay::Report report;
  std::optional<std::string> predicted_for = {};  ///< none: no prediction
  traces::Timeline measured;
  std::optional<traces::Timeline> predicted = {};
};

/// Replays the plan in this process: all ranks as threads or, if a launcher started it, one rank of
/// a job. Writes no trace. Throws as replay::replay() does, and Interrupted.
Replayed replay(const ReplayRequest& request, const Hooks& hooks);

/// Writes the trace if one is named and this process reports. Call it last: a trace that cannot be
/// written must not cost the measurements.
void write_trace(const ReplayRequest& request, const Replayed& replayed);

/// Document that --json prints.
io::Document document(const Replayed& replayed);
void fill(Record& record, const Replayed& replayed);

/// Answers the request.
io::Document answer(const ReplayRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
