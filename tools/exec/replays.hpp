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

/// Replays in this process: all ranks as threads or, if a launcher started the job, one rank over
/// `transport`. Replays again if the machine's speed changed meanwhile. In a job, rank 0's `wanted`
/// is used by all ranks.
Outcome run_replays(const CommandLine& line, const std::optional<io::Launch>& launch,
                    const std::string& transport, const Job& job, const Watching& wanted);

}  // namespace hipress::replay
