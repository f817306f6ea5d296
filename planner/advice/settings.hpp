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

/// A setting with its simulated values. The first is PyTorch's default, or the job's own.
struct Setting {
  std::string name;
  std::vector<SettingTime> times = {};

  const SettingTime& best() const;  ///< the default if no other value saves a notable share
};

/// DDP's own time per bucket on the GPU's host. The constant is fitted to the one-GPU rows of
/// PyTorch's published DDP steps (models/data/gpu_steps.csv): with buckets of 1 MiB instead of 25
/// MiB, a step takes 1 ms longer, in ResNet-50 (30 more buckets) as in ResNet-101 (78 more).
inline constexpr double kBucketTime_s = 18.5e-6;

/// Delays each gradient by kBucketTime_s for every bucket that the plan has before it in excess of
/// those of DDP's default. With fewer buckets, the gradient is ready earlier.
void charge_buckets(const casync::Plan& plan, models::Model& model);

/// DDP's bucket_cap_mb, simulated with 25, 1, 5, 50, 100 and 250. Requires Problem::machines.
Setting bucket_cap(const Problem& problem);

/// FSDP2's wrapping, simulated with the model's layers, with modules of at least 10 or 100 million
/// elements, and with the whole model as one module. `problem` is a GpuProblem. Omits rules that
/// wrap nothing, or the same modules as an earlier rule.
Setting fsdp_wrapping(const Problem& problem);

/// Describes the setting: "bucket_cap_mb 25, as now, is best: …" or "bucket_cap_mb 100 saves 3
/// % of …". Empty if only one value could be simulated.
std::string describe(const Setting& setting);

}  // namespace hipress::planner
