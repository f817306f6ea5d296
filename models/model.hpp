#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/mix.hpp"

namespace hipress::models {

enum class Dtype : std::uint8_t { kFloat32, kFloat16, kBfloat16 };

/// Bytes of one element.
constexpr std::int64_t size_of(Dtype dtype) { return dtype == Dtype::kFloat32 ? 4 : 2; }
const char* to_string(Dtype dtype);  ///< "float32", "float16", "bfloat16"
/// The cast that loses nothing of such a gradient ("fp16", "bf16"), as which a plan that leaves it
/// as it is sends it; empty for fp32.
std::string_view cast_of(Dtype dtype);

/// A tensor's part of a forward pass over one unit of its model (a token, an image).
struct Work {
  double flops = 0;      ///< of matrix products and convolutions
  double attention = 0;  ///< floating-point operations for each position that a token attends to
  double values = 0;     ///< elements that are read or written
  bool operator==(const Work&) const = default;
};

/// One tensor to synchronise.
struct Gradient {
  std::string name;
  std::int64_t elements = 0;  ///< at least 1
  double ready_s = 0;         ///< seconds after backward starts when it is complete
  Dtype dtype = Dtype::kFloat32;
  double flops = 0;  ///< of the part of backward that produces it; 0 if not known
  std::vector<std::int64_t> shape = {};  ///< outermost first; none: not known, one dimension
  /// Gradients of one bucket are handed over together, when the last of them is ready.
  std::optional<int> bucket = {};
  std::string layer = {};  ///< of which it is a part; empty: its name says it, or it is one
  /// Cores that the part of backward which completes it keeps busy, on average; see Model::threads.
  double cores = 0;
  Work work = {};  ///< none: not known
};

/// The dimensions: one, all elements, where the shape is not known. Their product is `elements`.
std::vector<std::int64_t> shape_of(const Gradient& gradient);

/// What is trained: its gradients in input order (gradient g is the one with index g).
struct Model {
  std::string name = {};
  std::string source = {};  ///< where sizes and timings come from
  int batch = 0;            ///< per GPU, in units of the model's throughput; 0 if not known
  std::string unit = {};    ///< of the throughput: "images", "tokens"
  double forward_s = 0;     ///< of one micro-step, with its loss; 0: not known
  double optimizer_s = 0;   ///< of a step, from the averaged gradients to its next forward
  double positions = 0;  ///< of a sequence, where units are tokens and nobody says; 0: no sequences
  /// Forward and backward passes of a step, at least 1. The last one's gradients are synchronised,
  /// with those of the others in them.
  int micro_steps = 1;
  /// With how many threads a rank computes on its host's cores; 0: not said, or computation is
  /// elsewhere, and occupies no core.
  int threads = 0;
  /// Cores that they keep busy on average before backward and in the optimizer, at most `threads`.
  double forward_cores = 0, optimizer_cores = 0;
  /// Bytes per second that computation reads and writes in its host's memory; 0: not said.
  double memory_traffic = 0;
  /// Memory of a GPU, in bytes, for the values of forward that backward needs; 0: not said.
  std::int64_t activation_bytes = 0;
  /// Of its computation, where the file says it; else assumed_mix() where it matters.
  std::optional<Mix> mix = {};
  /// False of a file that lists gradients as frameworks list parameters: the last is ready first.
  bool in_backward_order = true;
  std::vector<Gradient> gradients = {};
};

/// The last ready time, which is the length of backward: max over gradients, 0 for an empty model.
double backward_s(const Model& model);

/// What a step computes before its last backward: the previous step's optimizer, all forward
/// passes, and all backward passes but the last. None of it waits for a synchronisation, and no
/// synchronisation of the same step waits for it.
double before_backward_s(const Model& model);

/// Cores that a rank keeps busy, on average over what before_backward_s() is, and over backward.
double before_backward_cores(const Model& model);
double backward_cores(const Model& model);

std::int64_t total_elements(const Model& model);

/// Every gradient's ready time becomes the latest of its bucket.
void wait_for_buckets(Model& model);

/// Most threads that a rank computes with.
inline constexpr int kMaxThreads = 1 << 16;

/// Largest number of elements of a gradient, and of all gradients of a model together.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;

/// Longest ready time, and before_backward_s(), in seconds: a simulated iteration must fit 64-bit
/// picoseconds.
inline constexpr double kLongestTime_s = 1e6;

/// Reads a model from any of the three forms (docs/models.md), told apart by what they hold:
/// `name,elements` lines (SeCoPa's input.txt), a CSV with the header
/// `name,elements,ready_us,shape`, or a model YAML (*.yaml, *.yml). Throws io::InputError
/// naming file, line and gradient for: a malformed line, a size that is not in 1 … 2^48, a
/// shape that has another number of elements (models/shape.hpp), a time that is not in 0 …
/// kLongestTime_s, a duplicate or empty name, a name that must not be printed as it is
/// (io/utf8.hpp), an unknown key, a missing unit. For a model without gradients, the error
/// names the file. Ready times are those at which a training job hands gradients over: see
/// wait_for_buckets(). Blank lines are skipped. A shipped model may be named without path and
/// ending: read_model("vgg19"). The name of another architecture (models/architectures.hpp) makes
/// its gradients, without times.
Model read_model(const std::string& path);

/// The names of the shipped models ("bert_base", "bert_large", …), sorted.
std::vector<std::string> shipped_models();

}  // namespace hipress::models
