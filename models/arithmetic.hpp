#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"

namespace hipress::models {

/// Rates of the device of a rank, and the number of ranks.
struct Rates {
  std::string name = {};                    ///< of the machine
  std::map<std::string, double> peak = {};  ///< dense operations per second, by dtype
  double memory_bandwidth = 0;              ///< of a GPU, bytes per second
  std::uint32_t gpus = 1;                   ///< that train together
  std::uint32_t shards = 1;                 ///< of the optimizer's state
  bool operator==(const Rates&) const = default;
};

/// A job whose computation is to be derived from its model's Work.
struct Job {
  double batch = 0;  ///< sequences, or units of models without sequences, of a micro-step and GPU
  double positions = 0;                  ///< of a sequence; 0: the model's
  std::string_view dtype = "fp32";       ///< a row of dtypes()
  std::string_view checkpoint = "none";  ///< a row of checkpoints()
  int micro_steps = 1;
  double mfu = 0;             ///< share of the peak that forward and backward reach; 0: derived
  double units_per_s = 0;     ///< of a GPU while it computes: tokens, images; 0: derived
  double per_gradient_s = 0;  ///< DDP's own time, see kOwnTime_s
};

/// DDP's copies into and out of buckets, hooks and launches, for each gradient: PyTorch's table of
/// one rank without and with DDP (ResNet-50 and -101 on V100: 3 ms of 161 gradients, 9 ms of 314).
inline constexpr double kOwnTime_s = 22e-6;

std::vector<std::string_view> dtypes();       ///< "fp32", "tf32", "mixed", "bf16", "fp16"
std::vector<std::string_view> checkpoints();  ///< "none", "selective", "full"

/// Gives the model forward and ready times, the optimizer's time, dtypes, batch, micro-steps and
/// the memory of activations of the job. A product of matrices takes its operations over a share of
/// the machine's peak, and with everything else its bytes over a share of the memory's bandwidth;
/// backward is twice forward, and what checkpoints recompute. docs/arithmetic.md has the shares.
/// Returns sentences that name the assumptions. io::InputError for a model without Work, and for a
/// dtype that the machine has no peak of.
std::vector<std::string> compute(const Job& job, const Rates& rates, Model& model);

}  // namespace hipress::models
