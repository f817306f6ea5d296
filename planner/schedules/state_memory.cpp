#include "planner/schedules/state_memory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "casync/sharded.hpp"
#include "io/error.hpp"
#include "io/suggestion.hpp"

namespace hipress::planner {
namespace {

constexpr std::int64_t kMasterBytes = 4;  // fp32, of a parameter that is stored in half precision
constexpr std::int64_t kOuterBytes = 8;   // fp32 weights and momentum of local updates

/// What one of `nodes` has of the model's state.
void add_state(const models::Model& model, const OptimizerRow& optimizer, std::int64_t nodes,
               StateMemory& memory) {
  for (const models::Gradient& gradient : model.gradients) {
    const std::int64_t elements = (gradient.elements + nodes - 1) / nodes;
    const std::int64_t stored = elements * models::size_of(gradient.dtype);
    const bool half = gradient.dtype != models::Dtype::kFloat32;
    memory.parameters += stored;
    memory.gradients += stored;
    memory.optimizer += elements * (optimizer.bytes + (half ? kMasterBytes : 0));
  }
}

/// The most that so many layers in a row take.
std::int64_t most_in_a_row(const std::vector<std::int64_t>& layers, std::size_t count) {
  std::int64_t most = 0, sum = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    sum += layers[i] - (i >= count ? layers[i - count] : 0);
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

const std::vector<OptimizerRow>& optimizers() {
  static const std::vector<OptimizerRow> rows = {
      {"adamw", 8, "two moments in fp32"},
      {"adamw8bit", 2, "two moments in 8 bits"},
      {"momentum", 4, "SGD with momentum, in fp32"},
      {"sgd", 0, "nothing"},
  };
  return rows;
}

const OptimizerRow& find_optimizer(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OptimizerRow& row : optimizers()) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  throw io::InputError(fmt::format("unknown `optimizer` {}{}known are {}",
                                   io::quote(std::string(name)), io::before_known(name, names),
                                   fmt::join(names, ", ")));
}

StateMemory state_memory(const models::Model& model, const casync::Plan& plan,
                         const OptimizerRow& optimizer) {
  StateMemory memory;
  const casync::Layout layout = casync::make_layout(model, plan);
  if (!layout.timetable.sharding) {
    add_state(model, optimizer, 1, memory);
    if (layout.timetable.is_uniform()) return memory;
    for (const models::Gradient& gradient : model.gradients) {
      memory.optimizer += gradient.elements * kOuterBytes;
    }
    return memory;
  }
  const casync::Sharding& sharding = *layout.timetable.sharding;
  const std::uint32_t shards = sharding.shards(plan.nodes);
  add_state(model, optimizer, shards, memory);
  std::vector<std::int64_t> layers(layout.timetable.synchronisations.size());
  for (const std::uint32_t unit : layout.order) {
    layers[layout.part_of(unit)] = casync::stored_bytes(layout.units[unit], model, shards);
  }
  if (shards == 1) return memory;  // all that it needs is there
  memory.gathered =
      most_in_a_row(layers, sharding.stays_whole() ? layers.size() : sharding.in_flight);
  const std::uint32_t kept = sharding.gathers_among(plan.nodes);
  if (kept < shards) {  // a second shard, of fewer
    for (const std::int64_t layer : layers) memory.gathered += layer / kept;
  }
  memory.reductions = most_in_a_row(layers, 2);
  return memory;
}

}  // namespace hipress::planner
