#include "traces/sharded_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "io/error.hpp"
#include "models/model.hpp"
#include "traces/intervals.hpp"

namespace hipress::traces {
namespace {

using Places = std::vector<std::size_t>;

bool same_layers(const Sharding& a, const Sharding& b) {
  return std::ranges::equal(a.layers, b.layers,
                            [](const ShardedLayer& one, const ShardedLayer& other) {
                              return one.name == other.name && one.elements == other.elements;
                            });
}

bool is_whole(const NamedSharding& step) {
  return step.sharding && step.sharding->problem.empty() && !step.sharding->layers.empty();
}

[[noreturn]] void refuse(const NamedSharding& step) {
  const Sharding& sharding = *step.sharding;
  throw io::Unmet(fmt::format(
      "no model: the job is sharded (FSDP, ZeRO): {} has {} reduce-scatters among {} ranks, and {}",
      step.name, sharding.reduce_scatter.count, sharding.ranks, sharding.problem));
}

/// The whole steps. Steps at both ends may be cut off, and are left out.
Places whole_steps(const std::vector<NamedSharding>& steps, std::vector<std::string>& diagnostics) {
  Places whole;
  std::vector<std::string> left_out;
  const NamedSharding* broken = nullptr;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (is_whole(steps[i])) {
      whole.push_back(i);
      continue;
    }
    if (steps[i].sharding) broken = &steps[i];
    left_out.push_back(
        fmt::format("{} is left out: {}", steps[i].name,
                    steps[i].sharding ? steps[i].sharding->problem : "nothing is reduced in it"));
  }
  if (whole.empty()) refuse(*broken);
  diagnostics.insert(diagnostics.end(), left_out.begin(), left_out.end());
  std::size_t most = 0;
  for (const std::size_t i : whole) most = std::max(most, steps[i].sharding->layers.size());
  const auto leave_out = [&](std::size_t i) {
    diagnostics.push_back(fmt::format("{} is left out: it is cut off, with {} of {} layers",
                                      steps[i].name, steps[i].sharding->layers.size(), most));
  };
  const auto is_part = [&](std::size_t i) { return steps[i].sharding->layers.size() < most; };
  if (whole.size() > 1 && is_part(whole.back())) {
    leave_out(whole.back());
    whole.pop_back();
  }
  if (whole.size() > 1 && is_part(whole.front())) {
    leave_out(whole.front());
    whole.erase(whole.begin());
  }
  return whole;
}

void check_conserved(const std::vector<NamedSharding>& steps, const Places& places) {
  const NamedSharding& last = steps[places.back()];
  if (elements_of(*last.sharding) > models::kMaxElements) {
    throw io::Unmet(
        fmt::format("no model: the layers of {} have more than 2^48 elements", last.name));
  }
  for (const std::size_t i : places) {
    const std::int64_t elements = elements_of(*steps[i].sharding);
    if (elements == elements_of(*last.sharding)) continue;
    throw io::Unmet(fmt::format(
        "no model: elements are not conserved: the layers of {} have {} elements, those of {} {}; "
        "leave out steps that differ (schedule of the profiler)",
        steps[i].name, elements, last.name, elements_of(*last.sharding)));
  }
}

/// Median over the steps; empty if the value is missing in a step.
std::optional<double> median_over(
    const std::vector<const Sharding*>& all,
    const std::function<std::optional<double>(const Sharding&)>& value) {
  std::vector<double> values;
  for (const Sharding* one : all) {
    const auto time = value(*one);
    if (!time) return std::nullopt;
    values.push_back(*time);
  }
  return median(std::move(values));
}

Sharding with_medians(const std::vector<const Sharding*>& all) {
  Sharding made = *all.back();
  made.forward_s = median_over(all, [](const Sharding& one) { return one.forward_s; });
  made.optimizer_s = median_over(all, [](const Sharding& one) { return one.optimizer_s; });
  for (std::size_t i = 0; i < made.layers.size(); ++i) {
    made.layers[i].ready_s =
        median_over(all, [i](const Sharding& one) { return one.layers[i].ready_s; });
  }
  for (KindTotal Sharding::*kind : {&Sharding::all_gather, &Sharding::reduce_scatter,
                                    &Sharding::all_reduce, &Sharding::other}) {
    (made.*kind).time_s =
        median_over(all, [kind](const Sharding& one) { return (one.*kind).time_s; });
    (made.*kind).exposed_s =
        median_over(all, [kind](const Sharding& one) { return (one.*kind).exposed_s; });
  }
  return made;
}

}  // namespace

CommonSharding common_sharding(const std::vector<NamedSharding>& steps,
                               std::vector<std::string>& diagnostics) {
  const Places whole = whole_steps(steps, diagnostics);
  check_conserved(steps, whole);
  const Sharding& last = *steps[whole.back()].sharding;
  CommonSharding common;
  std::vector<const Sharding*> alike;
  for (const std::size_t i : whole) {
    const Sharding& one = *steps[i].sharding;
    if (!same_layers(one, last) || one.passes != last.passes) continue;
    common.steps.push_back(i);
    alike.push_back(&one);
  }
  if (alike.size() < whole.size()) {
    diagnostics.push_back(
        fmt::format("{} of the {} steps have other layers or micro-steps than the last, or another "
                    "order, and are left out of the medians",
                    whole.size() - alike.size(), whole.size()));
  }
  common.sharding = with_medians(alike);
  return common;
}

std::int64_t elements_of(const Sharding& sharding) {
  std::int64_t elements = 0;
  for (const ShardedLayer& layer : sharding.layers) {
    elements = std::min(models::kMaxElements + 1, elements + layer.elements);
  }
  return elements;
}

}  // namespace hipress::traces
