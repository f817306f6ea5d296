#pragma once

#include <cstdint>
#include <string>

#include "requests/sweep.hpp"

namespace hipress::sweep {

/// Runs a sweep as an array of `tasks` Slurm tasks with a shard each, waits for its end, and joins
/// the parts into the request's output. Parts and logs lie beside the output; parts are removed at
/// the end, logs on success. All tasks share one cache. Returns the exit status. Throws
/// io::InputError if sbatch is missing, the request is a shard already, or the output is not a
/// file. Throws io::RunError, which names the logs, if a task fails; the same command then resumes.
int sweep_by_slurm(const std::string& spec, const requests::SweepRequest& request,
                   std::int64_t tasks);

}  // namespace hipress::sweep
