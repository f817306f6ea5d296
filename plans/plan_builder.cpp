#include "plans/plan_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "io/suggestion.hpp"
#include "plans/most_algorithms.hpp"

namespace hipress::plans {

bool is_cast(std::string_view name) {
  return name == cast_of(models::Dtype::kFloat16) || name == cast_of(models::Dtype::kBfloat16);
}

bool is_raw(const models::Gradient& gradient, const casync::Plan& plan,
            const casync::Decision& decision) {
  return decision.algorithm == casync::kRaw ||
         plan.algorithms[static_cast<std::size_t>(decision.algorithm)].name ==
             cast_of(gradient.dtype);
}

std::size_t count_compressed(const models::Model& model, const casync::Plan& plan) {
  std::size_t count = 0;
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    const casync::Decision gather{.algorithm = plan.gather_of(static_cast<std::uint32_t>(g))};
    const bool raw = is_raw(model.gradients[g], plan, plan.decisions[g]) &&
                     is_raw(model.gradients[g], plan, gather);
    count += raw ? 0 : 1;
  }
  return count;
}

std::vector<std::string> used_algorithms(const models::Model& model, const casync::Plan& plan) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < plan.algorithms.size(); ++i) {
    const auto place = static_cast<std::int8_t>(i);
    bool used = std::ranges::find(plan.gathers, place) != plan.gathers.end();
    for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
      used = used || (plan.decisions[g].algorithm == place &&
                      !is_raw(model.gradients[g], plan, plan.decisions[g]));
    }
    if (used) names.push_back(plan.algorithms[i].name);
  }
  return names;
}

namespace {

/// Mean size of a stage's message over 12 steps, in bytes. It is exact for codecs whose sizes
/// repeat after 1, 2, 3, 4, 6 or 12 steps.
std::int64_t mean_bytes(const kernels::Codec& codec, kernels::Shape shape, int stage) {
  constexpr std::uint64_t kSteps = 12;
  std::int64_t bytes = 0;
  for (std::uint64_t step = 0; step < kSteps; ++step)
    bytes += codec.stage_bytes(shape, stage, step);
  return bytes / static_cast<std::int64_t>(kSteps);
}

}  // namespace

casync::Algorithm algorithm_of(const std::string& name,
                               const std::shared_ptr<const kernels::Codec>& codec) {
  casync::Algorithm algorithm{
      .name = name,
      .encoded_bytes = [codec](std::int64_t elements) { return codec->encoded_bytes(elements); },
      .half_precision = codec->traits().half_precision,
      .own_optimizer = codec->traits().own_optimizer};
  if (!codec->traits().additive) return algorithm;
  algorithm.stages = [codec](kernels::Shape shape) {
    std::vector<casync::Algorithm::Factor> factors;
    for (const kernels::Stage& stage : codec->stages(shape)) {
      const std::int64_t mean = mean_bytes(*codec, shape, static_cast<int>(factors.size()));
      factors.push_back({stage.bytes, stage.rank, stage.additive, mean});
    }
    return factors;
  };
  algorithm.refusal = [codec](kernels::Shape shape) { return codec->refusal(shape); };
  return algorithm;
}

std::string refusal(const casync::Algorithm& algorithm, const models::Gradient& gradient) {
  return algorithm.refusal ? algorithm.refusal(shape_of(gradient)) : std::string();
}

std::optional<std::int8_t> find_algorithm(const std::vector<casync::Algorithm>& algorithms,
                                          std::string_view name) {
  const auto same = [&](const casync::Algorithm& algorithm) { return algorithm.name == name; };
  const auto found = std::find_if(algorithms.begin(), algorithms.end(), same);
  if (found == algorithms.end()) return std::nullopt;
  return static_cast<std::int8_t>(found - algorithms.begin());
}

std::int8_t next_place(const std::vector<casync::Algorithm>& algorithms, std::string_view name) {
  if (algorithms.size() >= kMostAlgorithms) {
    throw io::InputError(fmt::format("algorithm {} is one more than the {} that a plan can mix",
                                     io::quote(name), algorithms.size()));
  }
  return static_cast<std::int8_t>(algorithms.size());
}

std::int8_t place_in(std::vector<casync::Algorithm>& algorithms,
                     const casync::Algorithm& algorithm) {
  if (const auto found = find_algorithm(algorithms, algorithm.name)) return *found;
  const std::int8_t place = next_place(algorithms, algorithm.name);
  algorithms.push_back(algorithm);
  return place;
}

PlanBuilder::PlanBuilder(const PlanContext& context) : context_(context) {
  if (context.nodes == 0) throw io::InputError("the number of nodes must be at least 1, got 0");
  resolved_.plan.topology = casync::find_topology(context.topology).name;
  resolved_.plan.nodes = context.nodes;
  resolved_.plan.decisions.resize(context.model.gradients.size());
  for (std::size_t g = 0; g < context.model.gradients.size(); ++g) decide(g, casync::kRaw, 1);
}

std::int8_t PlanBuilder::algorithm(const std::string& text) {
  std::vector<casync::Algorithm>& known = resolved_.plan.algorithms;
  if (const auto found = find_algorithm(known, text)) return *found;
  const std::int8_t place = next_place(known, text);
  std::shared_ptr<const kernels::Codec> codec;
  try {
    codec = kernels::make_codec(text, kernels::Device::kCpu, context_.compile_timeout_s);
  } catch (const std::invalid_argument& error) {
    throw io::InputError(error.what());
  }
  known.push_back(algorithm_of(text, codec));
  resolved_.codecs.push_back(std::move(codec));
  return place;
}

void PlanBuilder::decide(std::size_t gradient, std::int8_t algorithm_index,
                         std::int32_t partitions) {
  const std::string_view cast = cast_of(context_.model.gradients[gradient].dtype);
  if (algorithm_index == casync::kRaw && !cast.empty()) {
    algorithm_index = algorithm(std::string(cast));
  }
  resolved_.plan.decisions[gradient] = {algorithm_index, partitions};
}

void PlanBuilder::gather(std::size_t gradient, std::int8_t algorithm) {
  resolved_.plan.gathers.resize(context_.model.gradients.size(), casync::kRaw);
  resolved_.plan.gathers[gradient] = algorithm;
}

std::string PlanBuilder::refusal_of(std::int8_t algorithm, std::size_t gradient) const {
  if (algorithm == casync::kRaw) return {};
  return refusal(resolved_.plan.algorithms[static_cast<std::size_t>(algorithm)],
                 context_.model.gradients[gradient]);
}

PlanMatcher::PlanMatcher(std::string file, const PlanContext& context)
    : file_(std::move(file)),
      context_(context),
      trust_(context.trust),
      builder_(context),
      lines_(context.model.gradients.size()) {
  trust_.named.push_back(context.algorithm);
  for (std::size_t g = 0; g < lines_.size(); ++g) index_[context.model.gradients[g].name] = g;
}

void PlanMatcher::add(const PlanRow& row) {
  const auto found = index_.find(row.name);
  if (found == index_.end()) {
    std::vector<std::string_view> names;
    for (const models::Gradient& gradient : context_.model.gradients)
      names.push_back(gradient.name);
    refuse(row, fmt::format("is not in model {}, so the plan was made for another input{}",
                            io::quote(context_.model.name), io::question(row.name, names)));
  }
  const std::size_t g = found->second;
  if (lines_[g] != 0) {
    refuse(row, fmt::format("is listed twice, first in line {}", lines_[g]));
  }
  lines_[g] = row.line;
  const std::int64_t elements = context_.model.gradients[g].elements;
  if (row.elements && *row.elements != elements) {
    refuse(row, fmt::format("has {} elements in the plan but {} in model {}", *row.elements,
                            elements, io::quote(context_.model.name)));
  }
  try {
    const std::int8_t algorithm =
        row.algorithm.empty() ? casync::kRaw
                              : builder_.algorithm(trusted_algorithm(row.algorithm, trust_));
    const std::string refusal = builder_.refusal_of(algorithm, g);
    if (!refusal.empty()) {
      throw io::InputError(
          fmt::format("{} does not take it, since {}; leave it raw ('n')", row.algorithm, refusal));
    }
    builder_.decide(g, algorithm, static_cast<std::int32_t>(row.partitions));
    if (!row.gather.empty()) {
      builder_.gather(g, builder_.algorithm(trusted_algorithm(row.gather, trust_)));
    }
  } catch (const io::InputError& error) {
    refuse(row, fmt::format("cannot be compressed: {}", error.what()));
  }
}

ResolvedPlan PlanMatcher::take() {
  const auto missing = std::find(lines_.begin(), lines_.end(), 0);
  if (missing != lines_.end()) {
    const auto g = static_cast<std::size_t>(missing - lines_.begin());
    throw io::InputError(
        file_, 0,
        fmt::format("gradient {} of model {} is missing ({} of {} are); plan this model anew",
                    io::quote(context_.model.gradients[g].name), io::quote(context_.model.name),
                    std::count(lines_.begin(), lines_.end(), 0), lines_.size()));
  }
  return builder_.take();
}

void PlanMatcher::refuse(const PlanRow& row, const std::string& message) const {
  throw io::InputError(file_, row.line,
                       fmt::format("gradient {} {}", io::quote(row.name), message));
}

}  // namespace hipress::plans
