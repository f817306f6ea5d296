#include "replay/room.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "runtime/dataflow.hpp"
#include "runtime/operations.hpp"
#include "runtime/program.hpp"
#include "runtime/rank_runtime.hpp"
#include "runtime/stages.hpp"
#include "transport/record.hpp"

namespace hipress::replay {
namespace {

using casync::Kind;
using casync::Task;
using casync::TaskId;

constexpr std::int64_t kFloatBytes = sizeof(float);

/// Bytes per task of a rank in the tables of the program, the runtime and its exchange.
constexpr std::int64_t kOwnTaskBytes =
    sizeof(runtime::LocalTask) + sizeof(runtime::Interval) + sizeof(kernels::State) + 64;

/// Bytes per task of the graph, for the program's index of tasks. Verification adds a dataflow, and
/// the reference's order of tasks with its inverse.
constexpr std::int64_t kTaskBytes = sizeof(TaskId);
constexpr std::int64_t kVerifiedTaskBytes = 3 * sizeof(TaskId) + 1;

/// Adds up the memory of a graph's tasks.
class Estimate {
 public:
  Estimate(const casync::TaskGraph& graph, const models::Model& model,
           const plans::ResolvedPlan& plan, std::span<const std::uint32_t> nodes)
      : graph_(graph),
        model_(model),
        plan_(plan),
        layout_(casync::make_layout(model, plan.plan)),
        here_(graph.nodes),
        ranks_(static_cast<std::int64_t>(nodes.size())) {
    for (const std::uint32_t node : nodes) here_.at(node) = true;
  }

  Room room(bool verify) {
    for (const casync::Unit& unit : layout_.units) {
      if (!unit.members.empty()) room_.gradients += ranks_ * kFloatBytes * unit.elements;
    }
    // Each factor exists twice: as the values that are sent, and as the codec's own.
    for (const std::uint32_t factor : factors()) {
      room_.messages += 2 * ranks_ * kFloatBytes * layout_.units[factor].elements;
    }
    add_factor_states(verify);
    const runtime::Dataflow flow = runtime::read_dataflow(graph_);
    for (TaskId id = 0; id < graph_.tasks(); ++id) add(id, flow.fills_message[id]);
    const auto tasks = static_cast<std::int64_t>(graph_.tasks());
    room_.tables += ranks_ * tasks * (kTaskBytes + (verify ? kVerifiedTaskBytes : 0));
    if (verify) add_reference();
    const std::int64_t peers = graph_.nodes - 1;
    constexpr auto kRings = static_cast<std::int64_t>(2 * transport::kRingBytes);
    room_.connections = ranks_ * peers * kRings;
    return room_;
  }

 private:
  std::vector<std::uint32_t> factors() const {
    std::vector<std::uint32_t> factors(layout_.units.size() - layout_.first_factor);
    std::iota(factors.begin(), factors.end(), layout_.first_factor);
    return factors;
  }

  /// Adds the encoder states of factors: the ranks' own, and with verification the reference's.
  void add_factor_states(bool verify) {
    for (const std::uint32_t unit : layout_.owners()) {
      const casync::Unit& what = layout_.units[unit];
      const kernels::Codec& codec = *plan_.codecs[static_cast<std::size_t>(what.algorithm)];
      for (const std::uint32_t g : what.members) {
        room_.states +=
            (verify ? 2 : 1) * ranks_ * kernels::state_bytes(codec, shape_of(model_.gradients[g]));
      }
    }
  }

  /// Adds the memory of the reference. Each rank has its share of all nodes' encoder states and, of
  /// a coded partition that it checks, the values of all nodes: in the worst case, of the largest
  /// ones.
  void add_reference() {
    room_.states += encoded_states_ * ranks_ / graph_.nodes;
    std::vector<std::int64_t> coded;
    for (const casync::Unit& unit : layout_.units) {
      if (unit.members.empty() || unit.algorithm == casync::kRaw) continue;
      const bool casts =
          casync::algorithm_at(plan_.plan.algorithms, unit.algorithm)->half_precision;
      if (casts && unit.topology->form == casync::Topology::Form::kWhole) continue;
      for (std::int32_t k = 0; k < unit.slices(); ++k) {
        coded.push_back(casync::slice(unit.elements, unit.slices(), k).elements);
      }
    }
    std::ranges::sort(coded, std::greater());
    coded.resize(std::min(coded.size(), static_cast<std::size_t>(ranks_)));
    const std::int64_t elements = std::accumulate(coded.begin(), coded.end(), std::int64_t{0});
    room_.gradients += kFloatBytes * elements * graph_.nodes;
  }

  void add(TaskId id, bool fills_message) {
    const Task& task = graph_[id];
    const bool here = here_.at(task.node);
    if (here) room_.tables += kOwnTaskBytes;
    if (!fills_message) return;
    if (task.kind == Kind::kEncode) {
      // The program reports tasks whose codec is missing.
      if (static_cast<std::size_t>(task.algorithm) >= plan_.codecs.size()) return;
      const std::int64_t elements = runtime::slice_of(graph_, id, layout_).elements;
      const kernels::Codec& codec = *plan_.codecs[static_cast<std::size_t>(task.algorithm)];
      const std::int64_t arrays = runtime::state_arrays(codec);
      encoded_states_ += kFloatBytes * arrays * elements;
      if (here) room_.messages += codec.encoded_bytes(elements);
      if (here && arrays > 0 && stateful_.emplace(task.node, task.gradient, task.role).second) {
        room_.states += kFloatBytes * arrays * layout_.units[task.gradient].elements;
      }
    } else if (here) {
      room_.messages += task.amount;
    }
  }

  const casync::TaskGraph& graph_;
  const models::Model& model_;
  const plans::ResolvedPlan& plan_;
  const casync::Layout layout_;
  std::vector<bool> here_;  ///< per node: true if it is one of the ranks
  const std::int64_t ranks_;
  std::set<std::tuple<std::uint32_t, std::uint32_t, casync::Role>> stateful_;
  std::int64_t encoded_states_ = 0;
  Room room_;
};

}  // namespace

Room room_of(const casync::TaskGraph& graph, const models::Model& model,
             const plans::ResolvedPlan& plan, std::span<const std::uint32_t> nodes, bool verify) {
  return Estimate(graph, model, plan, nodes).room(verify);
}

void require_room(const Room& room, std::size_t ranks, std::int64_t available) {
  if (room.all() <= available) return;
  const auto size = [](std::int64_t bytes) { return io::format_size(bytes, 3); };
  throw io::InputError(fmt::format(
      "{} about {} of memory ({} for gradients, {} for messages, {} for what encoders "
      "keep, {} for tasks, {} for connections), and {} are available: start fewer ranks "
      "(`nnodes`), or take a smaller model",
      ranks == 1 ? "this rank needs" : fmt::format("{} ranks in one process need", ranks),
      size(room.all()), size(room.gradients), size(room.messages), size(room.states),
      size(room.tables), size(room.connections), size(available)));
}

}  // namespace hipress::replay
