#include "planner/analysis/memory.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "casync/layout.hpp"
#include "casync/topology.hpp"
#include "kernels/codec/codec.hpp"
#include "planner/problem/problem.hpp"

namespace hipress::planner {
namespace {

/// State that an encoder keeps, in bytes: of a slice or, with stages, of all gradients of a unit.
class StateBytes {
 public:
  StateBytes(const models::Model& model, const casync::Plan& plan)
      : model_(model), layout_(casync::make_layout(model, plan)) {
    for (const casync::Algorithm& algorithm : plan.algorithms) {
      codecs_.push_back(kernels::make_codec(algorithm.name));
    }
  }

  std::int64_t of(const casync::Task& encode, std::int64_t slice_bytes) const {
    const kernels::Codec& codec = *codecs_[static_cast<std::size_t>(encode.algorithm)];
    const kernels::CodecTraits& traits = codec.traits();
    if (!traits.additive) return (traits.error_feedback ? traits.state_arrays : 0) * slice_bytes;
    if (encode.stage > 0) return 0;  // counted with the first stage
    std::int64_t bytes = 0;
    for (const std::uint32_t member : layout_.units[encode.gradient].members) {
      bytes += kernels::state_bytes(codec, shape_of(model_.gradients[member]));
    }
    return bytes;
  }

 private:
  const models::Model& model_;
  casync::Layout layout_;
  std::vector<std::unique_ptr<kernels::Codec>> codecs_;
};

}  // namespace

PlanMemory plan_memory(const models::Model& model, const casync::Plan& plan,
                       casync::Folding folding) {
  // A library's collectives use their own buffers, and keep no state.
  const bool by_library =
      kind_of(plan.schedule) == JobKind::kSharding && !plan.shards_in_messages();
  if (by_library) return {};
  const casync::TaskGraph graph = casync::expand_to_run(model, plan, folding);
  const StateBytes states(model, plan);
  std::vector<PlanMemory> nodes(graph.representatives());
  for (const casync::Buffer& buffer : graph.buffers) {
    if (buffer.kind == casync::Buffer::Kind::kSlice) continue;
    const bool factor = buffer.kind == casync::Buffer::Kind::kFactor;
    // A factor is stored twice: for the wire, and in the codec.
    nodes[graph.representative(buffer.node)].buffer_bytes += (factor ? 2 : 1) * buffer.bytes;
  }
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind != casync::Kind::kEncode) continue;
    const casync::Buffer& slice = graph.buffers[graph.operands[id].reads];
    nodes[graph.representative(slice.node)].residual_bytes += states.of(graph[id], slice.bytes);
  }
  PlanMemory most;
  for (const PlanMemory& node : nodes) {
    most.residual_bytes = std::max(most.residual_bytes, node.residual_bytes);
    most.buffer_bytes = std::max(most.buffer_bytes, node.buffer_bytes);
  }
  return most;
}

}  // namespace hipress::planner
