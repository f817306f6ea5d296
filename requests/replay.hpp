#pragma once

#include "io/document.hpp"
#include "requests/hooks.hpp"
#include "requests/replay_request.hpp"
#include "requests/replayed.hpp"

/// The answer to the request "replay".
namespace hipress::requests {

/// Replays the plan in this process: as one rank of a job if a launcher started it, else with all
/// ranks as threads. Writes no trace. Throws Interrupted, and as replay::replay() does.
Replayed replay(const ReplayRequest& request, const Hooks& hooks);

/// Writes the trace if one is named and this process reports. Call it last: a failed write must not
/// cost the measurements.
void write_trace(const ReplayRequest& request, const Replayed& replayed);

io::Document answer(const ReplayRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
