#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"

namespace hipress::models {

/// Rates of a rank's device, and the number of ranks.
struct Rates {
  std::string name = {};                    ///< name of the machine
  std::map<std::string, double> peak = {};  ///< dense operations per second, by dtype
  double memory_bandwidth = 0;              ///< per GPU, bytes per second
  std::uint32_t gpus = 1;                   ///< number of GPUs that train together
  std::uint32_t shards = 1;                 ///< number of shards of the optimizer's state
  bool operator==(const Rates&) const = default;
};

/// Job whose computation compute() derives.
struct Job {
  double batch = 0;      ///< sequences per micro-step and GPU; units if the model has none
  double positions = 0;  ///< tokens per sequence; 0: the model's
  std::string_view dtype = "fp32";       ///< a row of dtypes()
  std::string_view checkpoint = "none";  ///< a row of checkpoints()
  int micro_steps = 1;
  double mfu = 0;             ///< share of the peak in forward and backward; 0: derived
  double units_per_s = 0;     ///< units per second of a GPU while it computes; 0: derived
  double per_gradient_s = 0;  ///< DDP's own time per gradient, see kOwnTime_s
};

/// DDP's own time per gradient, for copies into and out of buckets, hooks and launches. On one V100
/// in PyTorch's published steps, DDP adds 3 ms for the 161 gradients of ResNet-50 and 9 ms for the
/// 314 of ResNet-101.
inline constexpr double kOwnTime_s = 22e-6;

std::vector<std::string_view> dtypes();       ///< "fp32", "tf32", "mixed", "bf16", "fp16"
std::vector<std::string_view> checkpoints();  ///< "none", "selective", "full"

/// Sets the model's forward, ready and optimizer times, dtypes, batch, micro-steps and activation
/// memory for the job. Matrix products take FLOPs / (share · peak), and all operations take bytes /
/// (share · memory bandwidth); docs/arithmetic.md has the shares. Backward takes twice as long as
/// forward, plus the recomputation of checkpoints. Returns sentences that name the assumptions.
/// Throws io::InputError if the work of the model is unknown, or if the machine has no peak for the
/// dtype.
std::vector<std::string> compute(const Job& job, const Rates& rates, Model& model);

}  // namespace hipress::models
