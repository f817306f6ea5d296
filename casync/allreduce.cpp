#include "casync/strategy.hpp"

namespace hipress::casync {

/// One task per node. All start together, when the last node's gradient is complete: a Join, which
/// stands on node 0, waits for all of them.
void expand_allreduce(GraphBuilder& builder, const GradientWork& work) {
  if (builder.nodes() == 1) return;
  const std::uint32_t nodes = builder.folded() ? 1 : builder.nodes();
  const TaskId start = builder.add({.gradient = work.gradient, .kind = Kind::kJoin});
  for (std::uint32_t node = 0; node < nodes; ++node) builder.edge(work.ready[node], start);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const TaskId reduce =
        builder.add({.amount = work.elements * static_cast<std::int64_t>(sizeof(float)),
                     .gradient = work.gradient,
                     .node = node,
                     .rotation = 1,
                     .kind = Kind::kAllReduce});
    builder.edge(start, reduce);
    builder.edge(work.ready[node], reduce);
  }
}

}  // namespace hipress::casync
