#include "traces/kernel_classes.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "io/utf8.hpp"

namespace hipress::traces {
namespace {

using enum models::ComputeClass;

struct KernelRow {
  std::string_view text;  ///< in lower case
  models::ComputeClass what;
};

/// Rows in order of priority: the first row whose text is in the name decides. A template argument
/// may name any operator, so rows for the way in which a kernel works precede rows for its purpose.
constexpr KernelRow kKernels[] = {
    {"splitk", kGemm},  // reduction of a split product
    {"triton_poi", kElementwise},
    {"triton_tem", kGemm},
    {"elementwise_kernel", kElementwise},
    {"embedding", kElementwise},
    {"permute", kElementwise},
    {"lpnorm", kReduction},
    {"multi_tensor_l2norm", kReduction},
    {"reduce_kernel", kReduction},

    {"flash_fwd", kAttention},
    {"flash_bwd", kAttention},
    {"flash_attn", kAttention},
    {"flashattn", kAttention},
    {"fmha", kAttention},
    {"attention", kAttention},

    {"layer_norm", kNorm},
    {"layernorm", kNorm},
    {"batch_norm", kNorm},
    {"batchnorm", kNorm},
    {"group_norm", kNorm},
    {"groupnorm", kNorm},
    {"rms_norm", kNorm},
    {"rmsnorm", kNorm},
    {"rowwisemoments", kNorm},
    {"gammabeta", kNorm},
    {"cucomputegradinput", kNorm},
    {"bn_fw", kNorm},  // cuDNN's
    {"bn_bw", kNorm},
    {"miopenbatchnorm", kNorm},

    {"cutlass", kGemm},
    {"fbgemm_gpu", kElementwise},  // operators on embedding tables and ragged tensors
    {"gemm", kGemm},
    {"gemv", kGemm},
    {"xmma", kGemm},
    {"nvjet", kGemm},  // cuBLAS's on Hopper and later
    {"cublas", kGemm},
    {"cijk_", kGemm},  // Tensile's
    {"cask", kGemm},
    {"scudnn", kGemm},
    {"winograd", kGemm},
    {"fft2d", kGemm},  // cuDNN's convolutions
    {"wgrad", kGemm},
    {"dgrad", kGemm},
    {"fprop", kGemm},
    {"convolve", kGemm},
    {"convolution", kGemm},
    {"conv2d", kGemm},
    {"conv_depthwise", kGemm},
    {"asmconv", kGemm},  // MIOpen's
    {"naive_conv", kGemm},

    {"softmax", kReduction},
    {"triton_red", kReduction},
    {"triton_per", kReduction},
    {"nll_loss", kReduction},
    {"cross_entropy", kReduction},
    {"reduce", kReduction},
    {"reduction", kReduction},
    {"pool", kReduction},
    {"cumsum", kReduction},
    {"devicescan", kReduction},
    {"radixsort", kReduction},
    {"scan_innermost", kReduction},

    {"elementwise", kElementwise},
    {"pointwise", kElementwise},
    {"multi_tensor_apply", kElementwise},
    {"adam", kElementwise},
    {"dropout", kElementwise},
    {"gelu", kElementwise},
    {"silu", kElementwise},
    {"activation", kElementwise},
    {"nchwtonhwc", kElementwise},
    {"nhwctonchw", kElementwise},
    {"transpose", kElementwise},
    {"im2col", kElementwise},
    {"col2im", kElementwise},
    {"catarray", kElementwise},
    {"copy", kElementwise},
    {"fill", kElementwise},
    {"index", kElementwise},
    {"gather", kElementwise},
    {"scatter", kElementwise},
    {"scalepackedtensor", kElementwise},
};

}  // namespace

std::optional<models::ComputeClass> class_of_kernel(std::string_view name) {
  std::string folded(name);
  for (char& letter : folded) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  for (const KernelRow& row : kKernels) {
    if (folded.find(row.text) != std::string::npos) return row.what;
  }
  return std::nullopt;
}

void KernelTimes::add(std::string_view name, std::int64_t length_ns) {
  constexpr std::size_t kMostNames = 4096, kLongestName = 1024, kLongestText = 80;
  name = name.substr(0, kLongestName);
  if (known_.size() >= kMostNames) known_.clear();
  const auto [entry, is_new] = known_.try_emplace(std::string(name));
  if (is_new) entry->second = class_of_kernel(name);
  length_ns = std::max<std::int64_t>(0, length_ns);
  if (entry->second) {
    ns_[static_cast<std::size_t>(*entry->second)] += length_ns;
    return;
  }
  unrecognised_ns_ += length_ns;
  const std::string text = io::printable(name.substr(0, kLongestText));
  if (unrecognised_.size() < kMostNames || unrecognised_.contains(text)) {
    unrecognised_[text] += length_ns;
  }
}

std::optional<TracedMix> KernelTimes::mix() const {
  // The sum is in double precision, which absurd lengths cannot overflow.
  const double recognised = std::accumulate(ns_.begin(), ns_.end(), 0.0);
  const double all = recognised + static_cast<double>(unrecognised_ns_);
  const bool took_time = all > 0;
  if (!took_time) return std::nullopt;
  TracedMix found{.unrecognised = static_cast<double>(unrecognised_ns_) / all};
  if (recognised > 0) {
    std::ranges::transform(ns_, found.mix.begin(),
                           [&](std::int64_t ns) { return static_cast<double>(ns) / recognised; });
  }
  std::int64_t longest_ns = -1;
  for (const auto& [name, ns] : unrecognised_) {
    if (ns < longest_ns || (ns == longest_ns && name > found.longest_unrecognised)) continue;
    longest_ns = ns;
    found.longest_unrecognised = name;
  }
  return found;
}

}  // namespace hipress::traces
