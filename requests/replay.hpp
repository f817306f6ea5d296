#pragma once

#include "io/document.hpp"
#include "requests/hooks.hpp"
#include "requests/replay_request.hpp"
#include "requests/replayed.hpp"

/// The answer to the request "replay".
namespace hipress::requests {

/// Replays the plan in this process: all ranks as threads or, if a launcher started it, one rank of
/// a job. Writes no trace. Throws as replay::replay() does, and Interrupted.
Replayed replay(const ReplayRequest& request, const Hooks& hooks);

/// Writes the trace if one is named and this process reports. Call it last: a trace that cannot be
/// written must not cost the measurements.
void write_trace(const ReplayRequest& request, const Replayed& replayed);

/// Answers the request.
io::Document answer(const ReplayRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
