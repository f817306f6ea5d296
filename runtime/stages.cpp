#include "runtime/stages.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace hipress::runtime {
namespace {

/// Alignment of factors for codecs, in numbers: a cache line.
constexpr std::int64_t kFactorLine = 16;

std::int64_t line_aligned(std::int64_t values) { return casync::round_up(values, kFactorLine); }

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
              .first = member.first,
              .shape = shape_of(gradient),
              .values = values.data() + member.first,
              .on_wire = {},
              .factors = {},
              .states = {}};
    for (const kernels::StateArray& array : codec_.states(part.shape)) {
      part.states.push_back(
          state_of(gradient.name + " " + std::string(array.name), array.elements));
    }
    parts_.push_back(std::move(part));
  }
  std::int64_t own = kFactorLine;  // allows alignment of the first factor
  for (std::uint32_t stage = 0; stage < what.factors; ++stage) {
    const std::vector<casync::FactorPart> on_wire =
        casync::factor_parts(layout, what.first_factor + stage, model, plan.plan);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].on_wire.push_back(on_wire[i]);
      own += line_aligned(on_wire[i].values);
    }
    std::ranges::fill(factors_[stage], 0.0f);
    const casync::Unit& factor = layout.units[what.first_factor + stage];
    slices_.push_back({.count = factor.partitions, .length = factor.elements / factor.partitions});
  }
  own_.resize(static_cast<std::size_t>(own));
  const auto address = reinterpret_cast<std::uintptr_t>(own_.data()) / sizeof(float);
  float* next = own_.data() + (kFactorLine - address % kFactorLine) % kFactorLine;
  for (std::uint32_t stage = 0; stage < what.factors; ++stage) {
    for (Part& part : parts_) {
      part.factors.push_back(next);
      next += line_aligned(part.on_wire[stage].values);
    }
  }
}

void StagedUnit::run(const casync::Task& task, std::uint64_t seed, std::uint64_t iteration) {
  if (task.kind == casync::Kind::kDecode) return decode(seed, iteration);
  encode(task.stage, seed, iteration);
}

void StagedUnit::encode(std::uint32_t stage, std::uint64_t seed, std::uint64_t iteration) {
  if (stage > 0) take_mean(stage - 1);
  codec_.encode_stage(static_cast<int>(stage), slices(seed, iteration));
  place(stage, iteration);
  for_each_piece(stage, [](float* own, float* on_wire, std::int64_t values) {
    std::copy_n(own, values, on_wire);
  });
}

void StagedUnit::place(std::uint32_t stage, std::uint64_t iteration) {
  std::int64_t end = 0;
  for (Part& part : parts_) {
    const std::int64_t bytes = codec_.stage_bytes(part.shape, static_cast<int>(stage), iteration);
    const std::int64_t first = casync::round_up(end, casync::kFactorAlignment);
    part.on_wire[stage] = {first, bytes / static_cast<std::int64_t>(sizeof(float))};
    end = first + part.on_wire[stage].values;
  }
  Slices& slices = slices_[stage];
  slices.used = casync::round_up(end, casync::kSliceWord * slices.count) / slices.count;
}

template <class Copy>
void StagedUnit::for_each_piece(std::uint32_t stage, const Copy& copy) const {
  const Slices& slices = slices_[stage];
  for (const Part& part : parts_) {
    const auto [first, values] = part.on_wire[stage];
    for (std::int64_t done = 0; done < values;) {
      const std::int64_t slice = (first + done) / slices.used, at = (first + done) % slices.used;
      const std::int64_t length = std::min(values - done, slices.used - at);
      copy(part.factors[stage] + done, factors_[stage].data() + slice * slices.length + at, length);
      done += length;
    }
  }
}

void StagedUnit::decode(std::uint64_t seed, std::uint64_t iteration) {
  take_mean(static_cast<std::uint32_t>(factors_.size()) - 1);
  codec_.decode_stages(slices(seed, iteration));
}

void StagedUnit::collect_factors(std::vector<Factor>& factors) const {
  for (const Part& part : parts_) {
    for (std::uint32_t stage = 0; stage < part.factors.size(); ++stage) {
      const auto values = static_cast<std::size_t>(part.on_wire[stage].values);
      factors.push_back({part.gradient, stage, {part.factors[stage], values}});
    }
  }
}

void StagedUnit::take_residuals(std::span<float> sums) {
  for (const Part& part : parts_) {
    const std::vector<kernels::StateArray> arrays = codec_.states(part.shape);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (std::string_view(arrays[i].name) != "residual") continue;
      for (std::int64_t k = 0; k < arrays[i].elements; ++k) {
        sums[static_cast<std::size_t>(part.first + k)] += std::exchange(part.states[i][k], 0.0f);
      }
    }
  }
}

std::vector<Undo::Encoder> StagedUnit::encoders() const {
  std::vector<Undo::Encoder> encoders;
  for (const Part& part : parts_) {
    const std::vector<kernels::StateArray> arrays = codec_.states(part.shape);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      encoders.push_back({.first = part.first,
                          .elements = kernels::elements_of(part.shape),
                          .codec = &codec_,
                          .state = {part.states[i], arrays[i].elements},
                          .arrays = 1,
                          .length = arrays[i].elements});
    }
  }
  return encoders;
}

void StagedUnit::take_mean(std::uint32_t stage) {
  for_each_piece(stage, [](float* own, const float* on_wire, std::int64_t values) {
    std::copy_n(on_wire, values, own);
  });
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
