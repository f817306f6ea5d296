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

/// What came of a replay in this process. All ranks have the same numbers; predictions are of the
/// rank that reports.
struct Replayed {
  bool reports = true;  ///< this process's result is the job's
  ReplayJob job;
  replay::Report report;
  std::optional<std::string> predicted_for = {};  ///< none: nothing was predicted
  traces::Timeline measured;
  std::optional<traces::Timeline> predicted = {};
};

/// Replays the plan in this process: all ranks as threads or, if a launcher started it, one rank of
/// a job. Writes no trace. Errors as replay::replay(), and Interrupted.
Replayed replay(const ReplayRequest& request, const Hooks& hooks);

/// Writes the trace if one is named and this process reports. To be called last: what was measured
/// is worth more than a trace that cannot be written after all.
void write_trace(const ReplayRequest& request, const Replayed& replayed);

/// What --json prints.
io::Document document(const Replayed& replayed);
void fill(Record& record, const Replayed& replayed);

/// Answers the request.
io::Document answer(const ReplayRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
