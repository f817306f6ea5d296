#pragma once

#include <cstdint>
#include <string>

#include "requests/sweep.hpp"

namespace hipress::sweep {

/// Runs the sweep of the spec's file as an array of Slurm tasks, with a shard for each, waits for
/// its end, and joins the parts to the request's output. Parts and tasks' logs lie beside the
/// output and are removed when it is there; all tasks share one cache. Returns the exit status.
/// io::InputError if there is no sbatch, the request is of a shard already, or the output is not a
/// file. io::RunError, which names the log, if a task has failed: the same command then runs what
/// is missing.
int sweep_by_slurm(const std::string& spec, const requests::SweepRequest& request,
                   std::int64_t tasks);

}  // namespace hipress::sweep
