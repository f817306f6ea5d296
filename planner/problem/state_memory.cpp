#include "planner/problem/state_memory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "casync/sharded.hpp"
#include "io/error.hpp"
#include "io/suggestion.hpp"
#include "kernels/codec/codec.hpp"

namespace hipress::planner {
namespace {

constexpr std::int64_t kMasterBytes = 4;  // fp32 copy of a half-precision parameter
constexpr std::int64_t kOuterBytes = 8;   // fp32 weights and momentum of local updates

/// Adds one node's share of the model's state, which is divided among `nodes`.
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

/// Largest sum of `count` neighbouring layers.
std::int64_t most_in_a_row(const std::vector<std::int64_t>& layers, std::size_t count) {
  std::int64_t most = 0, sum = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    sum += layers[i] - (i >= count ? layers[i - count] : 0);
    most = std::max(most, sum);
  }
  return most;
}

/// Bytes of an element that is gathered or reduced with the algorithm: 2 for casts, otherwise its
/// stored size, to which codecs decode.
std::int64_t element_bytes(const models::Gradient& gradient, const casync::Algorithm* algorithm) {
  constexpr std::int64_t kHalf = 2;
  const bool half = algorithm != nullptr && algorithm->half_precision;
  return half ? kHalf : models::size_of(gradient.dtype);
}

/// Sizes of whole layers: parameters, gradients from backward in the type of the parameters, and
/// gradients in the type of reductions.
struct WholeLayers {
  std::vector<std::int64_t> parameters, made, reduced;

  WholeLayers(const models::Model& model, const casync::Plan& plan, const casync::Layout& layout,
              std::uint32_t shards) {
    const std::size_t count = layout.timetable.synchronisations.size();
    parameters.resize(count);
    reduced.resize(count);
    for (const std::uint32_t index : layout.order) {
      const casync::Unit& unit = layout.units[index];
      std::int64_t stored = 0, gathered = 0, of_reduction = 0;
      for (const std::uint32_t g : unit.members) {
        const models::Gradient& gradient = model.gradients[g];
        const auto bytes = [&](std::int8_t algorithm) {
          return gradient.elements *
                 element_bytes(gradient, casync::algorithm_at(plan.algorithms, algorithm));
        };
        stored += gradient.elements * models::size_of(gradient.dtype);
        gathered += bytes(plan.gather_of(g));
        of_reduction += bytes(plan.decisions[g].algorithm);
      }
      const std::int64_t padded = casync::stored_bytes(unit, model, shards);
      const auto share_of = [&](std::int64_t bytes) {
        return static_cast<std::int64_t>(static_cast<double>(padded) * static_cast<double>(bytes) /
                                         static_cast<double>(stored));
      };
      parameters[layout.part_of(index)] = share_of(gathered);
      reduced[layout.part_of(index)] = share_of(of_reduction);
    }
    made = parameters;
  }

  /// Largest size of two neighbouring layers' gradients: one computed, the other being reduced.
  std::int64_t most_reductions() const {
    std::int64_t most = parameters.size() == 1 ? std::max(made[0], reduced[0]) : 0;
    for (std::size_t i = 1; i < made.size(); ++i) {
      most = std::max({most, made[i] + reduced[i - 1], made[i - 1] + reduced[i]});
    }
    return most;
  }
};

/// Size of the fp32 arrays for error feedback; a GPU encodes whole gradients.
std::int64_t residual_bytes(const models::Model& model, const casync::Plan& plan) {
  constexpr std::int64_t kArrayBytes = 4;  // per element
  std::vector<std::unique_ptr<kernels::Codec>> codecs;
  for (const casync::Algorithm& one : plan.algorithms) {
    codecs.push_back(kernels::make_codec(one.name));
  }
  std::int64_t bytes = 0;
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    const std::int8_t index = plan.decisions[g].algorithm;
    if (index == casync::kRaw) continue;
    const kernels::Codec& codec = *codecs[static_cast<std::size_t>(index)];
    const kernels::CodecTraits& traits = codec.traits();
    if (traits.additive) {
      bytes += kernels::state_bytes(codec, models::shape_of(model.gradients[g]));
    } else if (traits.error_feedback) {
      bytes += kArrayBytes * traits.state_arrays * model.gradients[g].elements;
    }
  }
  return bytes;
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
  memory.residuals = residual_bytes(model, plan);
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
  const WholeLayers whole(model, plan, layout, shards);
  const std::vector<std::int64_t>& layers = whole.parameters;
  if (shards == 1) return memory;  // nothing is sharded
  memory.gathered =
      most_in_a_row(layers, sharding.stays_whole() ? layers.size() : sharding.in_flight);
  const std::uint32_t kept = sharding.gathers_among(plan.nodes);
  if (kept < shards) {  // each shard is kept a second time, among fewer nodes
    for (const std::int64_t layer : layers) memory.gathered += layer / kept;
  }
  memory.reductions = whole.most_reductions();
  return memory;
}

}  // namespace hipress::planner
