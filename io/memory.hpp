#pragma once

#include <cstdint>
#include <string>

namespace hipress::io {

/// Memory in bytes that this process can still allocate before the kernel kills a process: the
/// least of
///
/// - the machine's MemAvailable (else its physical memory),
/// - the unused part of the control group's limit, as in a container or Slurm job; cached files
///   count as unused,
/// - the unused part of the address space limit (ulimit -v).
///
/// Tests pass other folders than /proc and /sys/fs/cgroup.
std::int64_t available_memory(const std::string& proc = "/proc",
                              const std::string& cgroup = "/sys/fs/cgroup");

}  // namespace hipress::io
