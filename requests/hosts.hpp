#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "requests/hooks.hpp"
#include "requests/plan_request.hpp"
#include "requests/record.hpp"

/// Scaling study: throughput of a job with its present plan on several numbers of hosts.
namespace hipress::requests {

/// Figures of the job on one number of hosts.
struct HostsRow {
  std::uint32_t hosts = 1, gpus = 1;
  double iteration_s = 0, compute_s = 0;
  double units_per_s = 0;  ///< throughput of all GPUs, in HostsAnswer::unit
  /// Throughput that each host adds beyond the previous row, relative to a host's throughput in the
  /// first row; 1 in the first row.
  double added = 1;
  double efficiency = 1;      ///< throughput per host, relative to that in the first row
  std::string bound_by = {};  ///< bottleneck (models::bound_by()); empty: the graph is too large
  /// Memory of a GPU, in bytes: its state (StateMemory::total()) and its activations (0: unknown).
  std::int64_t state_bytes = 0, activation_bytes = 0;

  std::int64_t memory_bytes() const { return state_bytes + activation_bytes; }
  double exposed_s() const { return iteration_s - compute_s; }
};

/// A change of the job on the largest number of hosts, with the job's speedup by it.
struct HostsChange {
  std::string what;
  double speedup = 1;
  bool fits = true;  ///< its memory fits into a GPU
};

struct HostsAnswer {
  std::string plan, unit;
  std::vector<HostsRow> rows;
  std::vector<HostsChange> changes;  ///< largest speedup first
  std::string sentence;
  std::int64_t gpu_memory_bytes = 0;  ///< `gpu_memory`, or that of the machine's GPUs

  bool fits(const HostsRow& row) const { return row.memory_bytes() <= gpu_memory_bytes; }
};

/// Simulates the job on each of the request's numbers of hosts, with the plan `today` (default:
/// PyTorch's plan for the schedule). On the largest number, it also simulates changes of the job.
/// Throws InputError as simulate() does, for numbers that do not ascend, and for fields that only
/// apply to a search for a plan.
HostsAnswer compare_hosts(const PlanRequest& request, const Hooks& hooks);

io::Document document(const HostsAnswer& answer);
void fill(Record& record, const HostsAnswer& answer);

}  // namespace hipress::requests
