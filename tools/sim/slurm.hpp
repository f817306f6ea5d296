#pragma once

#include <cstdint>
#include <string>

#include "requests/sweep.hpp"

namespace hipress::sweep {

/// Runs a sweep as an array of `tasks` Slurm tasks, one shard each. Waits for them, and joins their
/// parts into the request's output. Parts and logs are written beside the output; parts are removed
/// at the end, and logs on success. All tasks share one cache. Returns the exit status. Throws
/// io::InputError if sbatch is missing, the request is already a shard, or the output is not a
/// file. If a task fails, throws io::RunError, which names the logs; the command then resumes.
int sweep_by_slurm(const std::string& spec, const requests::SweepRequest& request,
                   std::int64_t tasks);

}  // namespace hipress::sweep
