#include "runtime/stages.hpp"

#include <algorithm>
#include <utility>

namespace hipress::runtime {
namespace {

/// What codecs want their factors to begin at a multiple of, in numbers: a cache line.
constexpr std::int64_t kAlignment = 16;

std::int64_t aligned(std::int64_t values) {
  return (values + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

StagedUnit::StagedUnit(const casync::Layout& layout, std::uint32_t unit, const models::Model& model,
                       const plans::ResolvedPlan& plan, std::span<float> values,
                       std::vector<std::span<float>> factors, const StateOf& state_of)
    : codec_(*plan.codecs[static_cast<std::size_t>(layout.units[unit].algorithm)]),
      factors_(std::move(factors)) {
  const casync::Unit& what = layout.units[unit];
  for (const casync::Member& member : casync::places(what, model)) {
    const models::Gradient& gradient = model.gradients[member.gradient];
    Part part{.gradient = member.gradient,
              .shape = shape_of(gradient),
              .values = values.data() + member.first};
    for (const kernels::StateArray& array : codec_.states(part.shape)) {
      part.states.push_back(
          state_of(gradient.name + " " + std::string(array.name), array.elements));
    }
    parts_.push_back(std::move(part));
  }
  std::int64_t own = kAlignment;  // to begin at a multiple
  for (std::uint32_t stage = 0; stage < what.stages; ++stage) {
    const std::vector<casync::FactorPart> on_wire =
        casync::factor_parts(layout, what.first_factor + stage, model, plan.plan);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].on_wire.push_back(on_wire[i]);
      own += aligned(on_wire[i].values);
    }
    std::ranges::fill(factors_[stage], 0.0f);
  }
  own_.resize(static_cast<std::size_t>(own));
  const auto address = reinterpret_cast<std::uintptr_t>(own_.data()) / sizeof(float);
  float* next = own_.data() + (kAlignment - address % kAlignment) % kAlignment;
  for (std::uint32_t stage = 0; stage < what.stages; ++stage) {
    for (Part& part : parts_) {
      part.factors.push_back(next);
      next += aligned(part.on_wire[stage].values);
    }
  }
}

void StagedUnit::encode(std::uint32_t stage, std::uint64_t seed, std::uint64_t iteration) {
  if (stage > 0) take_mean(stage - 1);
  codec_.encode_stage(static_cast<int>(stage), slices(seed, iteration));
  for (const Part& part : parts_) {
    const auto [first, values] = part.on_wire[stage];
    std::copy_n(part.factors[stage], values, factors_[stage].data() + first);
  }
}

void StagedUnit::decode(std::uint64_t seed, std::uint64_t iteration) {
  take_mean(static_cast<std::uint32_t>(factors_.size()) - 1);
  codec_.decode_stages(slices(seed, iteration));
}

void StagedUnit::take_mean(std::uint32_t stage) {
  for (const Part& part : parts_) {
    const auto [first, values] = part.on_wire[stage];
    std::copy_n(factors_[stage].data() + first, values, part.factors[stage]);
  }
}

std::vector<kernels::StagedSlice> StagedUnit::slices(std::uint64_t seed,
                                                     std::uint64_t iteration) const {
  std::vector<kernels::StagedSlice> slices;
  for (const Part& part : parts_) {
    slices.push_back({.shape = part.shape,
                      .values = part.values,
                      .factors = part.factors,
                      .states = part.states,
                      .key = {.seed = seed, .step = iteration, .gradient = part.gradient}});
  }
  return slices;
}

}  // namespace hipress::runtime
