#pragma once

#include <string>
#include <vector>

#include "planner/problem/problem.hpp"

/// Settings of PyTorch that are easy to change: sizes of buckets and of wrapped modules.
namespace hipress::planner {

/// A step with one value of a setting.
struct SettingTime {
  std::string value;
  double iteration_s = 0;
};

/// A setting with the simulated values. The first one is PyTorch's default, or the job's own.
struct Setting {
  std::string name;
  std::vector<SettingTime> times = {};

  const SettingTime& best() const;  ///< the default if no other value saves a notable share
};

/// DDP's own time per bucket on the GPU's host. From PyTorch's table of one rank: buckets of 1 MiB
/// take 1 ms more than those of 25 MiB in ResNet-50 and in ResNet-101 (30 and 78 more buckets).
inline constexpr double kBucketTime_s = 18.5e-6;

/// Delays the gradients by DDP's own time for the buckets that the plan has in excess of the
/// default.
void charge_buckets(const casync::Plan& plan, models::Model& model);

/// DDP's bucket_cap_mb, simulated with 25, 1, 5, 50, 100 and 250. Requires Problem::machines.
Setting bucket_cap(const Problem& problem);

/// Wrapping for FSDP2, simulated with the model's layers, modules of at least 10 or 100 million
/// elements, and the whole model as one. `problem` is a GpuProblem. Omits rules that wrap nothing,
/// or the same modules as an earlier rule.
Setting fsdp_wrapping(const Problem& problem);

/// Sentence on the setting: "bucket_cap_mb 25, the default, is best: …" or "bucket_cap_mb 100 saves
/// 3 % of …". Empty if only one value could be simulated.
std::string describe(const Setting& setting);

}  // namespace hipress::planner
