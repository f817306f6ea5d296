#include "sweep/inputs.hpp"

#include <fmt/format.h>

#include "io/error.hpp"
#include "models/time_options.hpp"

namespace hipress::sweep {

SweepInputs::SweepInputs(const SweepSpec& the_spec, const PointRange& points) : spec(the_spec) {
  load_models();
  for (const AxisValue& file : spec.values[kProfile]) {
    try {
      profiles_.push_back(costs::read_profile(spec.path(file)));
    } catch (const io::InputError& error) {
      spec.fail(kProfile, file, error.what());
    }
  }
  for (std::int64_t index = points.begin; index < points.end; ++index) {
    const Point at = point(spec, index);
    const auto key = std::tuple(at[kProfile], at[kCluster], at[kNodes]);
    if (!clusters_.contains(key)) clusters_.emplace(key, read_cluster(at));
  }
}

void SweepInputs::load_models() {
  for (const AxisValue& file : spec.values[kModel]) {
    for (const AxisValue& time : spec.values[kComputeTime]) {
      models::Model& model = models_.emplace_back();
      try {
        model = models::read_model(spec.path(file));
      } catch (const io::InputError& error) {
        spec.fail(kModel, file, error.what());
      }
      try {
        if (time.number) models::apply({.compute_time = fmt::format("{}s", *time.number)}, model);
      } catch (const io::InputError& error) {
        spec.fail(kComputeTime, time, error.what());
      }
    }
  }
}

costs::Cluster SweepInputs::read_cluster(const Point& point) const {
  const costs::Profile& of_point = profile(point);
  const auto nodes = static_cast<std::uint32_t>(*value(point, kNodes).number);
  const AxisValue& file = value(point, kCluster);
  if (file.text.empty()) return costs::cluster_from_profile(of_point, nodes);
  try {
    return costs::read_cluster(spec.path(file), of_point, nodes);
  } catch (const io::InputError& error) {
    const bool by_default = value(point, kNodes).line == 0;
    spec.fail(
        kCluster, file,
        std::string(error.what()) +
            (by_default ? fmt::format(" (axis nodes is {} unless the spec gives it)", nodes) : ""));
  }
}

costs::LinkCosts SweepInputs::link(const Point& point) const {
  costs::LinkCosts link = base_cluster(point).link;
  if (const auto bandwidth = value(point, kBandwidth).number) {
    link.bandwidth = link.bandwidth_both_ways = *bandwidth;
  }
  link.latency_s = value(point, kLatency).number.value_or(link.latency_s);
  link.overhead_s = value(point, kOverhead).number.value_or(link.overhead_s);
  return link;
}

costs::Cluster SweepInputs::cluster(const Point& point) const {
  costs::Cluster cluster = base_cluster(point);
  cluster.link = link(point);
  for (double& speed : cluster.compute_speed) speed *= *value(point, kComputeSpeed).number;
  return cluster;
}

std::string SweepInputs::describe(const Point& point) const {
  std::string text = "point";
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    const AxisValue& at = spec.values[axis][point[axis]];
    if (at.line > 0) text += fmt::format(" {}={}", axes()[axis].name, at.text);
  }
  return text;
}

}  // namespace hipress::sweep
