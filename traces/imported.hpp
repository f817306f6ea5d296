#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/kernel_classes.hpp"
#include "traces/sharded.hpp"
#include "traces/tensors.hpp"

/// Contents of another tool's trace of a training job. Definitions: docs/traces.md.
namespace hipress::traces {

/// A gradient of one step, or a bucket of several gradients.
struct TracedGradient {
  std::int64_t elements = 0;        ///< 0: unknown
  std::vector<std::int64_t> shape;  ///< empty: unknown or a scalar
  std::string dtype;                ///< "float32", …; other types as in the trace; empty: unknown
  bool assumed = false;             ///< true if the type is assumed, since the trace has only bytes
  std::optional<std::int64_t> ranks = {};  ///< size of a bucket's process group
  std::optional<double> ready_s;           ///< seconds after the start of backward
  std::optional<SparseSize> sparse = {};   ///< empty: the gradient is dense
};

/// Sum of elements; empty if one is unknown, if there are no parts, or above models::kMaxElements.
std::optional<std::int64_t> total_of(const std::vector<TracedGradient>& parts);

/// One iteration of the job.
struct TracedStep {
  std::string name = {};
  std::optional<double> length_s = {};
  /// Time from the first kernel that computes (without a GPU: from the start of the step) to the
  /// start of backward, in one micro-step.
  std::optional<double> forward_s = {};
  /// Number of micro-steps: forward and backward passes per synchronisation.
  int micro_steps = 1;
  // Definitions of HTA, within the step: the union of compute kernels; the union of communication
  // kernels; the part of the latter without a compute kernel; the time without GPU activity.
  std::optional<double> compute_s = {};
  std::optional<double> communication_s = {};
  std::optional<double> exposed_communication_s = {};
  std::optional<double> idle_s = {};
  /// Part of exposed_communication_s that carries gradients or shards of them.
  std::optional<double> modelled_exposed_s = {};
  /// Time of the optimizers' steps after backward, if the time of averaging is unknown.
  std::optional<double> optimizer_s = {};
  int iterations = 1;  ///< iterations per profiler step; this is one of them
  /// Gradients that AccumulateGrad added, in order of execution.
  std::vector<TracedGradient> gradients = {};
  /// Gradients of inputs, and of parameters that no bucket carries.
  std::vector<TracedGradient> of_inputs = {};
  /// Gradients that torch.autograd.grad() returned: AccumulateGrad was reached and added nothing.
  std::int64_t returned = 0;
  /// Buckets: all-reduces that AccumulateGrad launched.
  std::vector<TracedGradient> buckets = {};
  /// All-reduces that backward did not launch; their content is unknown.
  std::vector<TracedGradient> other_all_reduces = {};
  /// All-reduces among other_all_reduces, after backward, whose number of elements shows that they
  /// carry the gradients.
  std::vector<TracedGradient> late_buckets = {};
  std::string travels = {};  ///< name of a collective other than all-reduce that AccumulateGrad
                             ///< launched
  /// True if AccumulateGrad launches matrix products, as hooks do for low-rank factors.
  bool factorises = false;
  KindTotal averages = {}, other = {};  ///< all-reduces of gradients; other collectives
  /// Collectives after backward that carry no gradients: sum of elements, name of the largest.
  std::int64_t behind_elements = 0;
  std::string behind = {};
  /// Reason why its gradients are unknown, as a sentence; empty if they are known, or if there are
  /// no gradients.
  std::string no_gradients = {};
  std::int64_t reduce_scatters = 0;
  std::int64_t gathered_elements = 0;  ///< output of all-gathers; 0: none or unknown
  std::int64_t collectives = 0;        ///< number of all collectives
  /// Sharding of the step; set if it reduces to shards.
  std::optional<ShardedStep> sharded = {};

  /// Elements of the buckets; empty if one is unknown or a gradient is sparse.
  std::optional<std::int64_t> collective_elements() const;
  /// Collectives that carry the gradients.
  const std::vector<TracedGradient>& carriers() const {
    return buckets.empty() ? late_buckets : buckets;
  }
};

/// True if both have the same sizes and shapes in the same order.
bool same_layout(const std::vector<TracedGradient>& a, const std::vector<TracedGradient>& b);

/// Collectives or messages of one kind in a whole trace.
struct HeldCollectives {
  std::string kind;  ///< "all-gather"
  std::int64_t count = 0;
  std::int64_t bytes = 0;  ///< total; 0: unknown
};

struct Imported {
  /// Format of the file: "PyTorch profiler", "PyTorch execution trace" or "Chakra execution trace"
  std::string format = {};
  std::vector<TracedStep> steps = {};
  /// True if `steps` are iterations; else a single one stands for the whole trace.
  bool has_steps = true;
  std::optional<std::int64_t> world_size = {};
  std::string hardware = {};  ///< empty: unknown
  /// Compute classes of all kernels; empty if no kernel computes or has a time.
  std::optional<TracedMix> mix = {};
  /// Sentences on what the trace lacks, each with its remedy.
  std::vector<std::string> not_told = {};
  std::vector<std::string> assumed = {};  ///< sentences on assumptions of the reader
  std::string problem = {};               ///< reason why no model can be made; empty: none known
  std::int64_t events = 0;                ///< number of events or nodes

  /// Adds a sentence to not_told unless it is there. After eight, only "and more of the same" is
  /// added.
  void tell(std::string sentence);
  bool has_times() const { return !steps.empty() && steps.front().length_s.has_value(); }
  // Chakra traces only.
  std::int64_t collectives = 0;     ///< number of collectives' nodes
  std::int64_t cpu_duplicates = 0;  ///< CPU's records of collectives that the GPU has, too
  // Execution traces only, PyTorch's and Chakra's.
  std::vector<HeldCollectives> held = {};
  bool is_generated = false;  ///< true if a workload generator made it: it has no PyTorch operator
  std::string sparse_operator = {};  ///< operator that makes a sparse gradient; empty: none
};

/// Beginning of a trace's text, made printable (io/utf8.hpp), so that memory stays bounded.
std::string short_text(std::string_view text);

}  // namespace hipress::traces
