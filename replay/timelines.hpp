#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "runtime/program.hpp"
#include "runtime/runtime.hpp"
#include "traces/timeline.hpp"
#include "transport/endpoint.hpp"

namespace hipress::replay {

/// Times of a rank's tasks in one iteration, relative to the start of backward.
struct RecordedRun {
  struct Times {
    std::chrono::nanoseconds start, end;
  };
  std::vector<Times> tasks;  ///< per Program::tasks()
};

RecordedRun record_run(std::span<const runtime::Interval> intervals,
                       transport::Clock::time_point start);

/// Collective. Merges all ranks' records of one iteration on rank 0; the other ranks get an empty
/// timeline. Time zero is the start of Forward. A replay does not run Forward, so Forward has the
/// length that the graph gives it. A Send ends when its Recv has the message. It starts when it was
/// issued, but not before the previous message between the same two ranks has arrived.
traces::Timeline gather_timeline(transport::Endpoint& endpoint, const runtime::Program& program,
                                 const RecordedRun& mine);

}  // namespace hipress::replay
