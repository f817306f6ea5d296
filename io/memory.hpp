#pragma once

#include <cstdint>
#include <string>

namespace hipress::io {

/// Bytes of memory that this process can take before the kernel kills a process for lack of it:
/// what is available on the machine (MemAvailable), or what is left of its control group's limit if
/// that is less, as in a container or a Slurm job. Cached files count as free in both. A limit on
/// address space (ulimit -v) may reduce it further. If /proc tells nothing, it is the physical
/// memory. The folders are /proc and /sys/fs/cgroup, or others in tests.
std::int64_t available_memory(const std::string& proc = "/proc",
                              const std::string& cgroup = "/sys/fs/cgroup");

}  // namespace hipress::io
