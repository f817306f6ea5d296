#pragma once

#include <cstdint>
#include <string>

namespace hipress::io {

/// Bytes of memory that this process can take before the kernel ends some process for it: what is
/// available on the machine (MemAvailable), or what one of its control groups leaves of its limit
/// where that is less, as in a container or a Slurm job; cached files count as free in both. Or
/// what its limit on address space (ulimit -v) leaves, where that is less still. Physical memory
/// where /proc tells nothing. The folders are those of /proc and /sys/fs/cgroup, other ones in
/// tests.
std::int64_t available_memory(const std::string& proc = "/proc",
                              const std::string& cgroup = "/sys/fs/cgroup");

}  // namespace hipress::io
