#include "planner/analysis/memory.hpp"

#include <algorithm>
#include <vector>

#include "casync/strategy.hpp"
#include "kernels/codec/codec.hpp"

namespace hipress::planner {
namespace {

/// Per algorithm, the arrays as long as a slice that its encoders keep.
std::vector<int> state_arrays(const std::vector<casync::Algorithm>& algorithms) {
  std::vector<int> arrays;
  for (const casync::Algorithm& algorithm : algorithms) {
    const kernels::CodecTraits traits = kernels::make_codec(algorithm.name)->traits();
    arrays.push_back(traits.error_feedback ? traits.state_arrays : 0);
  }
  return arrays;
}

}  // namespace

PlanMemory plan_memory(const models::Model& model, const casync::Plan& plan,
                       casync::Folding folding) {
  const casync::TaskGraph graph = casync::expand_to_run(model, plan, folding);
  const std::vector<int> arrays = state_arrays(plan.algorithms);
  std::vector<PlanMemory> nodes(graph.representatives());
  for (const casync::Buffer& buffer : graph.buffers) {
    const bool message = buffer.kind == casync::Buffer::Kind::kMessage;
    if (message) nodes[graph.representative(buffer.node)].buffer_bytes += buffer.bytes;
  }
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind != casync::Kind::kEncode) continue;
    const casync::Buffer& slice = graph.buffers[graph.operands[id].reads];
    nodes[graph.representative(slice.node)].residual_bytes +=
        arrays[static_cast<std::size_t>(graph[id].algorithm)] * slice.bytes;
  }
  PlanMemory most;
  for (const PlanMemory& node : nodes) {
    most.residual_bytes = std::max(most.residual_bytes, node.residual_bytes);
    most.buffer_bytes = std::max(most.buffer_bytes, node.buffer_bytes);
  }
  return most;
}

}  // namespace hipress::planner
