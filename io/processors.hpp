#pragma once

#include <vector>

namespace hipress::io {

/// The cores that the calling thread may run on, by Linux's numbers, ascending; at least one. Fewer
/// than the machine has where a batch system or taskset binds the process (srun --cpus-per-task).
std::vector<int> usable_cores();

}  // namespace hipress::io
