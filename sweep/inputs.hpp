#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "models/model.hpp"
#include "sweep/spec.hpp"

namespace hipress::sweep {

/// The points of a sweep from `begin` to before `end`.
struct PointRange {
  std::int64_t begin = 0, end = 0;
};

/// What the points of a sweep are made of, read once: models, profiles, clusters.
class SweepInputs {
 public:
  /// The spec must outlive it. What a file cannot give is wrong at the line that names the file.
  SweepInputs(const SweepSpec& the_spec, const PointRange& points);

  const AxisValue& value(const Point& point, Axis axis) const {
    return spec.values[axis][point[axis]];
  }
  /// Models are numbered by the values of their axis, and of the compute time's.
  std::uint32_t number_of_model(const Point& point) const {
    const auto times = static_cast<std::uint32_t>(spec.values[kComputeTime].size());
    return point[kModel] * times + point[kComputeTime];
  }
  const models::Model& model(const Point& point) const { return models_[number_of_model(point)]; }
  const std::vector<costs::Profile>& profiles() const { return profiles_; }  ///< per value
  const costs::Profile& profile(const Point& point) const { return profiles_[point[kProfile]]; }
  /// As the cluster's file or the profile says it, but for what makes its nodes differ.
  const costs::Cluster& base_cluster(const Point& point) const {
    return clusters_.at(cluster_key(point));
  }
  /// With what the point's other axes say of links and speeds.
  costs::LinkCosts link(const Point& point) const;
  costs::Cluster cluster(const Point& point) const;
  /// "point model=vgg19, nodes=4": the axes that the spec gives.
  std::string describe(const Point& point) const;

  const SweepSpec& spec;

 private:
  /// The values that a base cluster is made of.
  using ClusterKey = std::array<std::uint32_t, 9>;
  static ClusterKey cluster_key(const Point& point) {
    return {point[kProfile],     point[kCluster],        point[kNodes],
            point[kGpusPerNode], point[kHostsPerRack],   point[kOversubscription],
            point[kStragglers],  point[kStragglerSpeed], point[kSlowLink]};
  }
  void load_models();
  costs::Cluster read_cluster(const Point& point) const;
  void set_gpus(const Point& point, costs::Cluster& cluster) const;
  void set_racks(const Point& point, costs::Cluster& cluster) const;
  void set_stragglers(const Point& point, costs::Cluster& cluster) const;
  void set_slow_link(const Point& point, costs::Cluster& cluster) const;
  /// std::optional of an axis that has a value.
  std::optional<double> given(const Point& point, Axis axis) const {
    return value(point, axis).number;
  }

  std::vector<models::Model> models_;
  std::vector<costs::Profile> profiles_;
  std::map<ClusterKey, costs::Cluster> clusters_;
};

}  // namespace hipress::sweep
