#pragma once

#include <cstdint>
#include <string>

namespace hipress::io {

/// Memory that this process can still allocate before the kernel kills a process, in bytes: the
/// least of
///
/// - the machine's MemAvailable (else its physical memory),
/// - the rest of the control group's limit, as in a container or Slurm job; cached files count as
///   free,
/// - the rest of the address space limit (ulimit -v).
///
/// Tests pass other folders than /proc and /sys/fs/cgroup.
std::int64_t available_memory(const std::string& proc = "/proc",
                              const std::string& cgroup = "/sys/fs/cgroup");

}  // namespace hipress::io
