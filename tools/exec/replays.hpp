#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costs/spread.hpp"
#include "io/environment.hpp"
#include "replay/drift.hpp"
#include "replay/replay.hpp"
#include "tools/exec/job.hpp"

namespace hipress::replay {

/// What came of all replays.
struct Outcome {
  ReplayResult replayed;              ///< the last
  std::optional<Watched> watched;     ///< none: the profile has no probes
  std::vector<std::string> machines;  ///< by rank
  bool threads = true;                ///< or processes
};

/// Whether the machine is watched, and what it may move; as rank 0 says, for whoever else may have
/// no profile.
struct Watching {
  bool wanted = false;
  int again = 0;
  costs::Spread spread;
};

/// Replays in this process: all ranks as threads or, in a job of a launcher's, one rank over
/// `transport`. Replays again where the machine's speed changed meanwhile; `wanted` counts on rank
/// 0.
Outcome run_replays(const CommandLine& line, const std::optional<io::Launch>& launch,
                    const std::string& transport, const Job& job, const Watching& wanted);

/// Says what has no effect where ranks are threads, which meet in the process.
void warn_of_unused(const CommandLine& line);

}  // namespace hipress::replay
