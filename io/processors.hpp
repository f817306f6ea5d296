#pragma once

#include <vector>

namespace hipress::io {

/// Linux's numbers of the cores on which the calling thread may run, ascending; at least one. Batch
/// systems (srun --cpus-per-task) and taskset may bind the process to some of the machine's cores.
std::vector<int> usable_cores();

}  // namespace hipress::io
