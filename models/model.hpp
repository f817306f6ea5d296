#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/mix.hpp"

// Example: print when each gradient of a model is ready.
//
//   models::Model model = models::read_model("vgg19");  // or a file, such as "my_model.yaml"
//   models::apply({.compute_time = "120ms", .forward = "40ms"}, model);  // time_options.hpp
//   for (const models::Gradient& gradient : model.gradients) {
//     fmt::print("{} is ready after {} s\n", gradient.name, gradient.ready_s);
//   }
//   fmt::print("{} elements, backward takes {} s\n", models::total_elements(model),
//              models::backward_s(model));

namespace hipress::models {

enum class Dtype : std::uint8_t { kFloat32, kFloat16, kBfloat16 };

/// Bytes of one element.
constexpr std::int64_t size_of(Dtype dtype) { return dtype == Dtype::kFloat32 ? 4 : 2; }
const char* to_string(Dtype dtype);  ///< "float32", "float16", "bfloat16"
/// Lossless cast of a gradient of this type ("fp16", "bf16"), used by plans that leave it
/// uncompressed; empty for fp32.
std::string_view cast_of(Dtype dtype);

/// Work of a tensor in a forward pass over one unit of its model (a token, an image).
struct Work {
  double flops = 0;      ///< FLOPs of matrix products and convolutions
  double attention = 0;  ///< FLOPs per position that a token attends to
  double values = 0;     ///< number of elements read or written
  bool operator==(const Work&) const = default;
};

/// Gradient tensor to synchronise.
struct Gradient {
  std::string name;
  std::int64_t elements = 0;  ///< at least 1
  double ready_s = 0;         ///< time of completion after the start of backward, seconds
  Dtype dtype = Dtype::kFloat32;
  double flops = 0;                      ///< FLOPs of its part of backward; 0: unknown
  std::vector<std::int64_t> shape = {};  ///< outermost first; empty: unknown
  /// Bucket (fusion buffer) of the gradient; its gradients become ready together, with the last
  /// one.
  std::optional<int> bucket = {};
  std::string layer = {};  ///< name of its layer; empty: derived from `name` (docs/models.md)
  /// Average number of cores busy in its part of backward; see Model::threads.
  double cores = 0;
  Work work = {};  ///< all zero: unknown
};

/// Dimensions of a gradient; one dimension of all elements if the shape is unknown.
std::vector<std::int64_t> shape_of(const Gradient& gradient);

/// A model to train: its gradients in input order (gradient g has index g), and its times.
struct Model {
  std::string name = {};
  std::string source = {};  ///< origin of sizes and timings
  int batch = 0;            ///< batch size per GPU and micro-step, in `unit`; 0: unknown
  std::string unit = {};    ///< unit of throughput: "images", "tokens"
  double forward_s = 0;     ///< forward time of one micro-step, with its loss; 0: unknown
  double optimizer_s = 0;   ///< optimizer time of a step, up to the next forward
  double positions = 0;     ///< default sequence length if units are tokens; 0: no sequences
  /// Number of forward and backward passes (micro-steps) per step, at least 1. The gradients of the
  /// last one are synchronised; they include those of the others.
  int micro_steps = 1;
  /// Number of threads of a rank's computation on host cores; 0: unknown, or computation occupies
  /// no host core.
  int threads = 0;
  /// Average number of busy cores before backward and in the optimizer, at most `threads`.
  double forward_cores = 0, optimizer_cores = 0;
  /// Host memory traffic of computation, bytes per second; 0: unknown.
  double memory_traffic = 0;
  /// Activation memory per GPU, in bytes; 0: unknown.
  std::int64_t activation_bytes = 0;
  /// Time of forward and backward of a micro-step at the device's peak rate, in seconds, without
  /// recomputation for checkpoints; 0: unknown.
  double at_peak_s = 0;
  /// Mix of its computation; unset: assumed_mix().
  std::optional<Mix> mix = {};
  /// False if the gradients are in the order of a framework's parameters: the last is ready first.
  bool in_backward_order = true;
  std::vector<Gradient> gradients = {};
};

/// Training throughput. Model FLOPs utilisation (MFU) as in PaLM (Chowdhery et al., 2022, appendix
/// B).
struct Throughput {
  double units_per_s = 0;     ///< units per second of all GPUs together
  std::string unit = {};      ///< "tokens", "images"
  std::optional<double> mfu;  ///< share of a step that forward and backward take at peak rate
};
/// Throughput of `gpus` GPUs with steps of `step_s` seconds; nullopt if the model's batch size is
/// unknown.
std::optional<Throughput> throughput(const Model& model, std::uint32_t gpus, double step_s);

/// Duration of backward in seconds: the last ready time; 0 for an empty model.
double backward_s(const Model& model);

/// Computation time of a step before its last backward, in seconds: the previous step's optimizer,
/// all forward passes, and all backward passes but the last. This computation does not wait for a
/// synchronisation, and no synchronisation of the same step waits for it.
double before_backward_s(const Model& model);

/// Average number of busy cores of a rank, during before_backward_s() and during backward.
double before_backward_cores(const Model& model);
double backward_cores(const Model& model);

std::int64_t total_elements(const Model& model);

/// Sets every gradient's ready time to the latest of its bucket.
void wait_for_buckets(Model& model);

/// Maximum number of threads of a rank's computation.
inline constexpr int kMaxThreads = 1 << 16;

/// Maximum number of elements of a gradient, and of all gradients of a model together.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;

/// Maximum of ready times and of before_backward_s(), in seconds: a simulated iteration must fit
/// into 64-bit picoseconds.
inline constexpr double kLongestTime_s = 1e6;

/// Reads a model from any of three formats (docs/models.md), recognised by content or name:
/// `name,elements` lines (SeCoPa's input.txt), a CSV with the header
/// `name,elements,ready_us,shape`, or a model YAML (*.yaml, *.yml). A shipped model may be named
/// without path and ending: read_model("vgg19"). The name of an architecture
/// (models/architectures.hpp) gives its gradients, without times.
///
/// Blank lines are skipped. Ready times are those at which a training job hands gradients over: see
/// wait_for_buckets().
///
/// io::InputError names file, line and gradient for a malformed line, a size outside 1 … 2^48, a
/// shape with a different number of elements (models/shape.hpp), a time outside 0 … kLongestTime_s,
/// a duplicate, empty or unprintable name (io/utf8.hpp), an unknown key, or a missing unit. For a
/// model without gradients, the error names the file.
Model read_model(const std::string& path);

/// Names of the shipped models ("bert_base", "bert_large", …), sorted.
std::vector<std::string> shipped_models();

}  // namespace hipress::models
