#include "models/arithmetic.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "models/architectures.hpp"

namespace hipress::models {
namespace {

struct DtypeRow {
  std::string_view name;
  std::array<std::string_view, 2> peaks;  ///< names in Rates::peak; the first one found counts
  Dtype gradients;
  double bytes;         ///< bytes per value in computation
  double matrix_share;  ///< share of the peak that matrix products reach
};
constexpr std::array<DtypeRow, 5> kDtypes = {{
    {"fp32", {"fp32", "fp32"}, Dtype::kFloat32, 4, 0.85},
    {"tf32", {"tf32", "tf32"}, Dtype::kFloat32, 4, 0.6},
    {"mixed", {"bf16", "fp16"}, Dtype::kFloat32, 2, 0.68},
    {"bf16", {"bf16", "bf16"}, Dtype::kBfloat16, 2, 0.68},
    {"fp16", {"fp16", "fp16"}, Dtype::kFloat16, 2, 0.68},
}};

/// Activation checkpoints: shares of forward's products, attention and other operations that
/// backward recomputes, and the share of values that forward keeps.
struct CheckpointRow {
  std::string_view name;
  double products, attention, values, kept;
};
constexpr std::array<CheckpointRow, 3> kCheckpoints = {{
    {"none", 0, 0, 0, 1},
    {"selective", 0.5, 0, 1, 0.4},
    {"full", 1, 1, 1, 0.06},
}};

constexpr double kAttentionShare = 0.4;  // share of the peak
constexpr double kMemoryShare = 0.75;    // share of the memory bandwidth
constexpr double kBackwardAttention = 2.5;
constexpr double kKept = 0.5;  // share of forward's values that backward needs
/// Memory of a logit while the loss is computed, in bytes: itself in half precision, and in fp32
/// its copy, its log-probability and its gradient.
constexpr double kLogitBytes = 2 + 3 * 4;
/// Memory traffic of Adam per parameter, in bytes: fp32 weight and two moments are read and
/// written, the gradient is read.
constexpr double kOptimizerBytes = 28;
/// DDP's accesses to a gradient's values: copies into its bucket and back.
constexpr double kBucketAccesses = 4;
/// Lower bound of the host's time to launch the kernels of a tensor's forward and backward.
constexpr double kLaunches_s = 200e-6;
/// Slowdown with several ranks. kBeside is the share of the GPU that concurrent collectives take.
/// kWait is the slowdown per doubling of the ranks, which wait for the slowest. Both are multiplied
/// by pass time / kernel time, but at most by kMostOfHost: times vary more if the GPU waits for its
/// host.
constexpr double kBeside = 0.025, kWait = 0.01, kMostOfHost = 3;

template <std::size_t N, typename Row>
const Row& row_named(const std::array<Row, N>& rows, std::string_view name, const char* field) {
  std::vector<std::string_view> names;
  for (const Row& row : rows) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  throw io::InputError(fmt::format("`{}` {}", field, io::none_of(name, names)));
}

template <typename Rows>
std::vector<std::string_view> names_of(const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) names.push_back(row.name);
  return names;
}

/// Row for convolutions: PyTorch computes fp32 ones in tf32 if the GPU supports it.
const DtypeRow& row_of_convolutions(const DtypeRow& dtype, const Rates& rates) {
  const bool faster = &dtype == &kDtypes[0] && rates.peak.contains("tf32");
  return faster ? kDtypes[1] : dtype;
}

double peak_of(const DtypeRow& dtype, const Rates& rates) {
  for (const std::string_view name : dtype.peaks) {
    const auto found = rates.peak.find(std::string(name));
    if (found != rates.peak.end()) return found->second;
  }
  std::vector<std::string> known;
  for (const auto& [name, peak] : rates.peak) known.push_back(name);
  throw io::InputError(fmt::format("`dtype` {}: machine {} has no such peak, it has {}", dtype.name,
                                   rates.name, fmt::join(known, ", ")));
}

bool has_work(const Model& model) {
  return std::ranges::any_of(model.gradients,
                             [](const Gradient& one) { return one.work != Work(); });
}

/// Sets the work of a model with known shapes to that of its matrix products. Throws io::InputError
/// for convolutions, and for models without matrices.
void assume_work(Model& model) {
  for (Gradient& gradient : model.gradients) {
    const bool looked_up = gradient.name.find("emb") != std::string::npos ||
                           gradient.name.find("wte") != std::string::npos ||
                           gradient.name.find("wpe") != std::string::npos;
    if (gradient.shape.size() > 2) {
      throw io::InputError(fmt::format(
          "`batch`: the work of {}'s convolutions depends on the size of images, which its file "
          "does not give: name an architecture as `input` (resnet50), or give `compute_time`",
          model.name));
    }
    if (gradient.shape.size() < 2 || looked_up) continue;
    gradient.work = {
        .flops = 2.0 * static_cast<double>(gradient.elements),
        .values = static_cast<double>(2 * (gradient.shape.front() + gradient.shape.back()))};
  }
  if (!has_work(model)) {
    throw io::InputError(
        fmt::format("`batch`: the work of {} is unknown: no matrix of it has a shape. Name an "
                    "architecture as `input` (llama3_8b), or give `compute_time`",
                    model.name));
  }
  model.unit = "tokens";
  if (model.positions == 0) model.positions = 2048;
}

/// Passes of a micro-step on one GPU, at the assumed shares of its rates.
struct Passes {
  double forward_s = 0, backward_s = 0;
  std::vector<double> backward = {};  ///< seconds by gradient
  double flops = 0;                   ///< FLOPs of forward and backward, without recomputation
  double at_peak_s = 0;               ///< time of these FLOPs at the peak
  double values = 0;                  ///< number of elements that forward reads or writes
};

Passes passes_of(const Model& model, double units, double positions, const DtypeRow& dtype,
                 const CheckpointRow& checkpoint, const Rates& rates) {
  const DtypeRow& convolutions = row_of_convolutions(dtype, rates);
  const double memory_rate = rates.memory_bandwidth * kMemoryShare;
  Passes all;
  for (const Gradient& gradient : model.gradients) {
    const Work& work = gradient.work;
    const DtypeRow& row = gradient.shape.size() > 2 ? convolutions : dtype;
    const double peak = peak_of(row, rates), attended = work.attention * positions;
    const double products_s = work.flops * units / (peak * row.matrix_share);
    const double attention_s = attended * units / (peak * kAttentionShare);
    const double values_s = work.values * units * dtype.bytes / memory_rate;
    all.forward_s += products_s + attention_s + values_s;
    all.backward.push_back(products_s * (2 + checkpoint.products) +
                           attention_s * (kBackwardAttention + checkpoint.attention) +
                           values_s * (2 + checkpoint.values));
    all.backward_s += all.backward.back();
    all.flops += 3 * (work.flops + attended) * units;
    all.at_peak_s += 3 * (work.flops + attended) * units / peak;
    all.values += work.values * units;
  }
  return all;
}

/// Number of logits of a token: the largest output of a product. 0 if the model's units are not
/// tokens.
double logits_of(const Model& model) {
  double most = 0;
  if (model.positions == 0) return most;
  for (const Gradient& gradient : model.gradients) {
    if (gradient.shape.size() != 2) continue;
    most = std::max(most, gradient.work.flops / (2 * static_cast<double>(gradient.shape[1])));
  }
  return most;
}

/// Slowdown factor of a pass with several ranks.
double waiting(const Rates& rates, double pass_s, double kernels_s) {
  if (rates.gpus == 1) return 1;
  const double of_host = std::clamp(pass_s / kernels_s, 1.0, kMostOfHost);
  return 1 + of_host * (kBeside + kWait * std::log2(static_cast<double>(rates.gpus)));
}

/// Sets missing work: that of the architecture with the model's name, or that of its matrices'
/// shapes. In the second case, adds a sentence to `said`.
void require_work(Model& model, std::vector<std::string>& said) {
  if (has_work(model)) return;
  if (auto architecture = named_architecture(model.name)) {
    model = *std::move(architecture);
    return;
  }
  assume_work(model);
  said.push_back(fmt::format(
      "the work of {} is taken from the shapes of its matrices, without attention", model.name));
}

}  // namespace

std::vector<std::string_view> dtypes() { return names_of(kDtypes); }
std::vector<std::string_view> checkpoints() { return names_of(kCheckpoints); }

std::vector<std::string> compute(const Job& job, const Rates& rates, Model& model) {
  const DtypeRow& dtype = row_named(kDtypes, job.dtype, "dtype");
  const CheckpointRow& checkpoint = row_named(kCheckpoints, job.checkpoint, "checkpoint");
  std::vector<std::string> said;
  require_work(model, said);
  const bool sequences = model.positions > 0;
  if (!sequences && job.positions > 0) {
    throw io::InputError(fmt::format(
        "`seq`: {} is not trained on sequences of any length; leave it out", model.name));
  }
  const double positions = job.positions > 0 ? job.positions : model.positions;
  const double units = job.batch * (sequences ? positions : 1);
  const Passes passes = passes_of(model, units, positions, dtype, checkpoint, rates);
  const double kernels_s = passes.forward_s + passes.backward_s;
  double pass_s = std::max(kernels_s, static_cast<double>(model.gradients.size()) * kLaunches_s);
  const char* how = "by arithmetic from data sheets, and not measured";
  const char* doubt = "; it may be 40 % off: `mfu`, `tokens_per_s` or `compute_time` make it exact";
  if (job.mfu > 0) {
    pass_s = passes.at_peak_s / job.mfu;
    how = "from the given `mfu`";
    doubt = "";
  }
  if (job.units_per_s > 0) {
    pass_s = units / job.units_per_s;
    how = "from the given units per second";
    doubt = "";
  }
  const double scale = pass_s / kernels_s * waiting(rates, pass_s, kernels_s);
  model.batch = static_cast<int>(std::min(units, 2e9));
  model.micro_steps = job.micro_steps;
  model.at_peak_s = passes.at_peak_s;
  model.forward_s = passes.forward_s * scale;
  model.optimizer_s = static_cast<double>(total_elements(model)) * kOptimizerBytes /
                      (rates.memory_bandwidth * kMemoryShare) / rates.shards;
  model.activation_bytes =
      static_cast<std::int64_t>(std::min(passes.values * kKept * checkpoint.kept * dtype.bytes +
                                             units * logits_of(model) * kLogitBytes,
                                         1e18));
  const double copy_s = kBucketAccesses * static_cast<double>(size_of(dtype.gradients)) /
                        (rates.memory_bandwidth * kMemoryShare);
  double done_s = 0;
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    Gradient& gradient = model.gradients[g];
    done_s += passes.backward[g] * scale + job.per_gradient_s;
    if (job.per_gradient_s > 0) done_s += copy_s * static_cast<double>(gradient.elements);
    gradient.ready_s = done_s;
    gradient.dtype = dtype.gradients;
    gradient.bucket.reset();
  }
  const std::string length =
      sequences ? fmt::format(", {:.0f} tokens a sequence", positions) : std::string();
  said.push_back(fmt::format(
      "computation is {}: forward {}, backward {}, {:.0f} % of {}'s peak in {}{}{}", how,
      io::format_duration(model.forward_s), io::format_duration(done_s),
      100 * passes.at_peak_s / (model.forward_s + done_s), rates.name, dtype.name, length, doubt));
  return said;
}

}  // namespace hipress::models
