#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/kernel_classes.hpp"
#include "traces/sharded.hpp"
#include "traces/tensors.hpp"

/// Contents of a training job's trace, written by another tool. docs/traces.md has definitions.
namespace hipress::traces {

/// A gradient of one step, or a bucket of several gradients.
struct TracedGradient {
  std::int64_t elements = 0;        ///< 0: unknown
  std::vector<std::int64_t> shape;  ///< empty: unknown or a scalar
  std::string dtype;                ///< "float32", …, or a name from the trace; empty: unknown
  bool assumed = false;             ///< the type is assumed, since the trace has only bytes
  std::optional<std::int64_t> ranks = {};  ///< size of a bucket's process group
  std::optional<double> ready_s;           ///< seconds after the start of backward
  std::optional<SparseSize> sparse = {};   ///< empty: the gradient is dense
};

/// Sum of elements. Empty if a size is unknown, if there are no parts, or if it exceeds
/// models::kMaxElements.
std::optional<std::int64_t> total_of(const std::vector<TracedGradient>& parts);

/// One iteration of the job.
struct TracedStep {
  std::string name = {};
  std::optional<double> length_s = {};
  /// Time in one micro-step from its first computing kernel to the start of backward. Without a
  /// GPU, it counts from the start of the step.
  std::optional<double> forward_s = {};
  /// Number of micro-steps: forward and backward passes per synchronisation.
  int micro_steps = 1;
  // Times within the step, as HolisticTraceAnalysis defines them: the union of compute kernels, the
  // union of communication kernels, the part of that without a compute kernel, and the time without
  // GPU activity.
  std::optional<double> compute_s = {};
  std::optional<double> communication_s = {};
  std::optional<double> exposed_communication_s = {};
  std::optional<double> idle_s = {};
  /// Part of exposed_communication_s in which gradients, or shards of them, are sent.
  std::optional<double> modelled_exposed_s = {};
  /// Time of optimizer steps after backward; only if the trace does not show when averaging ended.
  std::optional<double> optimizer_s = {};
  int iterations = 1;  ///< iterations in the profiler's step, of which this is one
  /// Gradients that AccumulateGrad added, in the order of execution.
  std::vector<TracedGradient> gradients = {};
  /// Gradients of inputs, and of parameters that are in no bucket.
  std::vector<TracedGradient> of_inputs = {};
  /// Number of gradients that torch.autograd.grad() returned, for which AccumulateGrad added
  /// nothing.
  std::int64_t returned = 0;
  /// Buckets: all-reduces that AccumulateGrad launched.
  std::vector<TracedGradient> buckets = {};
  /// All-reduces that backward did not launch. Their contents are unknown.
  std::vector<TracedGradient> other_all_reduces = {};
  /// Those of other_all_reduces that start after backward, and whose number of elements shows that
  /// they carry the gradients.
  std::vector<TracedGradient> late_buckets = {};
  std::string travels = {};  ///< collective other than all-reduce that AccumulateGrad launched
  /// True if AccumulateGrad launched matrix products, as hooks for low-rank factors do.
  bool factorises = false;
  KindTotal averages = {}, other = {};  ///< all-reduces of gradients; other collectives
  /// Collectives after backward that carry no gradients: sum of elements, and name of the largest.
  std::int64_t behind_elements = 0;
  std::string behind = {};
  /// Sentence that says why the gradients are unknown. Empty if they are known, or there are none.
  std::string no_gradients = {};
  std::int64_t reduce_scatters = 0;
  std::int64_t gathered_elements = 0;  ///< outputs of all-gathers; 0: none or unknown
  std::int64_t collectives = 0;        ///< number of all collectives
  /// Set if the step reduces gradients to shards.
  std::optional<ShardedStep> sharded = {};

  /// Elements in the buckets. Empty if a bucket's size is unknown or a gradient is sparse.
  std::optional<std::int64_t> collective_elements() const;
  /// Collectives that carry the gradients.
  const std::vector<TracedGradient>& carriers() const {
    return buckets.empty() ? late_buckets : buckets;
  }
};

/// True if both have equal sizes and shapes in the same order.
bool same_layout(const std::vector<TracedGradient>& a, const std::vector<TracedGradient>& b);

/// Collectives or messages of one kind in the whole trace.
struct HeldCollectives {
  std::string kind;  ///< "all-gather"
  std::int64_t count = 0;
  std::int64_t bytes = 0;  ///< total; 0: unknown
};

struct Imported {
  /// Format of the file: "PyTorch profiler", "PyTorch execution trace" or "Chakra execution trace".
  std::string format = {};
  std::vector<TracedStep> steps = {};
  /// True if `steps` are iterations. If false, a single step stands for the whole trace.
  bool has_steps = true;
  std::optional<std::int64_t> world_size = {};
  std::string hardware = {};  ///< empty: unknown
  /// Compute classes of all kernels. Empty if no kernel computes or if kernels have no times.
  std::optional<TracedMix> mix = {};
  /// Sentences that say what the trace lacks, each with a remedy.
  std::vector<std::string> not_told = {};
  std::vector<std::string> assumed = {};  ///< sentences on assumptions of the reader
  std::string problem = {};               ///< reason why no model can be made; empty: none known
  std::int64_t events = 0;                ///< number of events or nodes

  /// Adds a sentence to not_told, if it is new. After eight, adds only "and more of the same".
  void tell(std::string sentence);
  bool has_times() const { return !steps.empty() && steps.front().length_s.has_value(); }
  // For Chakra traces only:
  std::int64_t collectives = 0;     ///< nodes of collectives
  std::int64_t cpu_duplicates = 0;  ///< the CPU's records of collectives that the GPU also has
  // For execution traces only, PyTorch's and Chakra's:
  std::vector<HeldCollectives> held = {};
  bool is_generated = false;         ///< a workload generator made it: it has no PyTorch operator
  std::string sparse_operator = {};  ///< operator that makes a sparse gradient; empty: none
};

/// Beginning of a trace's text, made printable (io/utf8.hpp). Cut, so that memory stays bounded.
std::string short_text(std::string_view text);

}  // namespace hipress::traces
