#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/kernel_classes.hpp"
#include "traces/sharded.hpp"
#include "traces/tensors.hpp"

/// What a trace of a training job that another tool recorded tells; docs/traces.md has the
/// definitions.
namespace hipress::traces {

/// A gradient of one step, or a bucket of several that one collective carries.
struct TracedGradient {
  std::int64_t elements = 0;        ///< 0: the trace does not tell
  std::vector<std::int64_t> shape;  ///< none: the trace does not tell
  std::string dtype;     ///< "float32", …; else as the trace writes it; empty: not told
  bool assumed = false;  ///< the type is assumed: the trace tells bytes alone
  std::optional<std::int64_t> ranks = {};  ///< size of a bucket's process group
  std::optional<double> ready_s;           ///< after the start of backward
  std::optional<SparseSize> sparse = {};   ///< empty: the gradient is dense
};

/// Elements of all parts; empty if one does not tell, or there are none.
std::optional<std::int64_t> total_of(const std::vector<TracedGradient>& parts);

/// One iteration.
struct TracedStep {
  std::string name = {};
  std::optional<double> length_s = {};
  /// Before the start of backward: on the GPU from the first kernel that computes, else from the
  /// start of the step. Of one micro-step.
  std::optional<double> forward_s = {};
  /// Forward and backward passes until gradients are synchronised.
  int micro_steps = 1;
  // HTA's definitions, in the window of the step: the union of compute kernels, the union of
  // communication kernels, the part of the latter that no compute kernel covers, and the time that
  // no activity of the GPU covers.
  std::optional<double> compute_s = {};
  std::optional<double> communication_s = {};
  std::optional<double> exposed_communication_s = {};
  std::optional<double> idle_s = {};
  /// Part of exposed_communication_s that carries gradients or shards of them.
  std::optional<double> modelled_exposed_s = {};
  /// Time of the optimizers' steps after backward, if the trace does not tell when gradients are
  /// averaged.
  std::optional<double> optimizer_s = {};
  int iterations = 1;  ///< in the profiler's step, of which this is one
  /// Of AccumulateGrad, in the order in which they ran.
  std::vector<TracedGradient> gradients = {};
  /// Gradients of inputs, and of parameters that no bucket carries.
  std::vector<TracedGradient> of_inputs = {};
  /// Gradients that torch.autograd.grad() returned: AccumulateGrad was reached and added nothing.
  std::int64_t returned = 0;
  /// Of the all-reduces that AccumulateGrad launched.
  std::vector<TracedGradient> buckets = {};
  /// Those that nothing of backward launched: nothing says of what.
  std::vector<TracedGradient> other_all_reduces = {};
  /// Those of other_all_reduces after backward that carry the gradients, since they have as many
  /// elements.
  std::vector<TracedGradient> late_buckets = {};
  std::string travels = {};  ///< other collective that AccumulateGrad launched
  /// Matrix products in AccumulateGrad, as hooks make them for factors of low rank.
  bool factorises = false;
  KindTotal averages = {}, other = {};  ///< all-reduces of gradients, and the other collectives
  /// Collectives after backward that carry no gradients: their elements, and the kind of the
  /// largest.
  std::int64_t behind_elements = 0;
  std::string behind = {};
  /// Sentence that says why its gradients are not told; empty if they are, or if it has none.
  std::string no_gradients = {};
  std::int64_t reduce_scatters = 0;
  std::int64_t gathered_elements = 0;  ///< what comes out of all-gathers; 0: not told, or none
  std::int64_t collectives = 0;        ///< all together
  /// Of a step that reduces to shards.
  std::optional<ShardedStep> sharded = {};

  /// Elements of the buckets; empty if one of them does not tell, or carries a sparse gradient.
  std::optional<std::int64_t> collective_elements() const;
  /// Collectives that carry the gradients.
  const std::vector<TracedGradient>& carriers() const {
    return buckets.empty() ? late_buckets : buckets;
  }
};

/// Whether these have the same sizes and shapes in the same order.
bool same_layout(const std::vector<TracedGradient>& a, const std::vector<TracedGradient>& b);

/// Collectives or messages of one kind in a whole trace.
struct HeldCollectives {
  std::string kind;  ///< "all-gather"
  std::int64_t count = 0;
  std::int64_t bytes = 0;  ///< together; 0: not told
};

struct Imported {
  /// "PyTorch profiler", "PyTorch execution trace", "Chakra execution trace"
  std::string format = {};
  std::vector<TracedStep> steps = {};
  /// Whether `steps` are iterations; else the one there is stands for the whole trace.
  bool has_steps = true;
  std::optional<std::int64_t> world_size = {};
  std::string hardware = {};  ///< empty: not told
  /// Of all kernels of the trace; none: it has none that compute, or no times of them.
  std::optional<TracedMix> mix = {};
  /// Sentences: what this trace does not tell, and the remedy.
  std::vector<std::string> not_told = {};
  std::vector<std::string> assumed = {};  ///< sentences about what the reader took it for
  std::string problem = {};               ///< why no model can be made; empty: none known
  std::int64_t events = 0;                ///< events or nodes

  /// Adds a sentence to not_told, once, and of what is said of step after step the first few.
  void tell(std::string sentence);
  bool has_times() const { return !steps.empty() && steps.front().length_s.has_value(); }
  // Of Chakra traces.
  std::int64_t collectives = 0;     ///< nodes of collectives
  std::int64_t cpu_duplicates = 0;  ///< of these, those of the CPU
  // Only for execution traces, PyTorch's and Chakra's.
  std::vector<HeldCollectives> held = {};
  bool is_generated = false;         ///< a generator of workloads made it: no PyTorch operator
  std::string sparse_operator = {};  ///< makes a sparse gradient; empty: none does
};

/// What of a trace's text is kept, so that memory does not grow with it: its beginning, made
/// printable (io/utf8.hpp).
std::string short_text(std::string_view text);

}  // namespace hipress::traces
