#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "costs/cluster.hpp"
#include "costs/machine_options.hpp"
#include "costs/profile.hpp"
#include "models/model.hpp"
#include "sweep/spec.hpp"

namespace hipress::sweep {

/// Half-open range of points.
struct PointRange {
  std::int64_t begin = 0, end = 0;
};

/// Models, profiles and clusters of a sweep's points, each read once.
class SweepInputs {
 public:
  /// Reads the inputs. `the_spec` must outlive this object. Throws InputError if a file cannot
  /// provide what a point needs; the error names the spec's line with the file.
  SweepInputs(const SweepSpec& the_spec, const PointRange& points);

  const AxisValue& value(const Point& point, Axis axis) const {
    return spec.values[axis][point[axis]];
  }
  /// Index of a point's model. It depends on axes kModel and kComputeTime.
  std::uint32_t number_of_model(const Point& point) const {
    const auto times = static_cast<std::uint32_t>(spec.values[kComputeTime].size());
    return point[kModel] * times + point[kComputeTime];
  }
  const models::Model& model(const Point& point) const { return models_[number_of_model(point)]; }
  /// Index of a point's profile. It depends on axes kProfile and kMachine.
  std::uint32_t number_of_profile(const Point& point) const {
    const auto machines = static_cast<std::uint32_t>(spec.values[kMachine].size());
    return point[kProfile] * machines + point[kMachine];
  }
  const std::vector<costs::Profile>& profiles() const { return profiles_; }
  const costs::Profile& profile(const Point& point) const {
    return profiles_[number_of_profile(point)];
  }
  /// Cluster of the cluster file or the profile, changed by the axes of nodes, GPUs, cards, racks,
  /// stragglers and the slow link.
  const costs::Cluster& base_cluster(const Point& point) const {
    return clusters_.at(cluster_key(point));
  }
  /// Link costs, and the cluster, with the changes of all axes.
  costs::LinkCosts link(const Point& point) const;
  costs::Cluster cluster(const Point& point) const;
  /// Values of the axes that the spec gives, such as "point model=vgg19, nodes=4".
  std::string describe(const Point& point) const;

  const SweepSpec& spec;

 private:
  /// Axis values that a base cluster depends on.
  using ClusterKey = std::array<std::uint32_t, 11>;
  static ClusterKey cluster_key(const Point& point) {
    return {point[kProfile],     point[kCluster],        point[kNodes],
            point[kGpusPerNode], point[kHostsPerRack],   point[kOversubscription],
            point[kStragglers],  point[kStragglerSpeed], point[kSlowLink],
            point[kMachine],     point[kCards]};
  }
  void load_models();
  void load_profiles();
  costs::MachineOptions machine_options(const AxisValue& profile, const AxisValue& machine) const;
  costs::Cluster read_cluster(const Point& point) const;
  costs::Cluster read_machine_cluster(const Point& point, std::uint32_t nodes) const;
  void set_gpus(const Point& point, costs::Cluster& cluster) const;
  void set_cards(const Point& point, costs::Cluster& cluster) const;
  void set_racks(const Point& point, costs::Cluster& cluster) const;
  void set_stragglers(const Point& point, costs::Cluster& cluster) const;
  void set_slow_link(const Point& point, costs::Cluster& cluster) const;
  /// Number of an axis's value; empty if it is not set.
  std::optional<double> given(const Point& point, Axis axis) const {
    return value(point, axis).number;
  }

  std::vector<models::Model> models_;
  std::vector<costs::Profile> profiles_;
  std::map<ClusterKey, costs::Cluster> clusters_;
};

}  // namespace hipress::sweep
