#pragma once

#include <vector>

namespace hipress::io {

/// Cores that the calling thread may run on, by Linux's numbers, ascending; at least one. A batch
/// system or taskset may bind the process to fewer than the machine has (srun --cpus-per-task).
std::vector<int> usable_cores();

}  // namespace hipress::io
