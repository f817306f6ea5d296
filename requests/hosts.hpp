#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "requests/hooks.hpp"
#include "requests/plan_request.hpp"

/// One question about several numbers of hosts: what a job that trains as it does today gains by
/// more of them.
namespace hipress::requests {

/// The job on so many hosts.
struct HostsRow {
  std::uint32_t hosts = 1, gpus = 1;
  double iteration_s = 0, compute_s = 0;
  double units_per_s = 0;  ///< of all GPUs; steps per second where the batch is not known
  /// Throughput that the last hosts added, over what as many of the first row have; 1 for that.
  double added = 1;

  double exposed_s() const { return iteration_s - compute_s; }
};

/// A change of the job on the most hosts, and what its throughput is multiplied by.
struct HostsChange {
  std::string what;
  double speedup = 1;
};

struct HostsAnswer {
  std::string plan, unit;
  std::vector<HostsRow> rows;
  std::vector<HostsChange> changes;  ///< the best first
  std::string sentence;
};

/// Whole numbers with commas between them, in ascending order; one alone is a list, too. InputError
/// that names `hosts`.
std::vector<std::uint32_t> parse_hosts(const std::string& text);

/// Simulates the job on each number of hosts with the plan of `today`, by default PyTorch's for the
/// schedule, and on the most of them with changes. InputError as simulate().
HostsAnswer compare_hosts(const PlanRequest& request, const std::vector<std::uint32_t>& hosts,
                          const Hooks& hooks);

io::Document document(const HostsAnswer& answer);

}  // namespace hipress::requests
